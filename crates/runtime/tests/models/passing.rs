//! Trouble that passes, and time that runs out.

use super::*;

#[tokio::test]
async fn trouble_on_the_far_side_is_tried_again() {
    for protocol in BOTH {
        for status in [408, 429, 500, 502, 503, 529] {
            let behaviours = [Behaviour::status(status, "not now"), fine()];
            let result = outcome(protocol, PATIENCE, behaviours).await;
            assert_eq!(result, (Ok(reply("fine", &[])), 2), "{protocol:?} {status}");
        }
    }
}

#[tokio::test]
async fn after_the_last_retry_the_last_trouble_is_told() {
    for protocol in BOTH {
        let behaviours = [500, 502, 503].map(|it| Behaviour::status(it, "not now"));
        let result = outcome(protocol, PATIENCE, behaviours).await;
        assert_eq!(result, (Err(unavailable(3, "HTTP 503: not now")), 3), "{protocol:?}");
    }
}

#[tokio::test]
async fn an_error_page_is_trouble_like_any_other() {
    let page = || Behaviour::Raw(Raw::new(502, "text/html", ["<html>\n <h1>Bad Gateway</h1>"]));
    for protocol in BOTH {
        let result = outcome(protocol, PATIENCE, [page(), fine()]).await;
        assert_eq!(result, (Ok(reply("fine", &[])), 2), "{protocol:?}");
        let result = outcome(protocol, PATIENCE, [page(), page(), page()]).await;
        let detail = "HTTP 502: <html> <h1>Bad Gateway</h1>";
        assert_eq!(result, (Err(unavailable(3, detail)), 3), "{protocol:?}");
    }
}

#[tokio::test]
async fn whoever_says_when_to_come_back_is_not_asked_earlier() {
    for protocol in BOTH {
        let started = Instant::now();
        let behaviours = [Behaviour::busy("retry-after-ms", "400"), fine()];
        let result = outcome(protocol, PATIENCE, behaviours).await;
        assert_eq!(result, (Ok(reply("fine", &[])), 2), "{protocol:?}");
        assert!(started.elapsed() >= Duration::from_millis(400), "{:?}", started.elapsed());
    }
}

#[tokio::test]
async fn nobody_waits_for_a_retry_that_would_come_too_late() {
    for protocol in BOTH {
        let patience = Patience { whole: Duration::from_secs(20), ..PATIENCE };
        let behaviours = [Behaviour::busy("retry-after", "25"), fine()];
        let result = outcome(protocol, patience, behaviours).await;
        assert_eq!(result, (Err(unavailable(1, "HTTP 429: {}")), 1), "{protocol:?}");
    }
}

#[tokio::test]
async fn a_broken_stream_is_asked_for_again_and_nothing_of_it_is_kept() {
    for protocol in BOTH {
        for end in [End::Cut, End::Clean] {
            let answer = Answer::text("half of this").and_call("read_logs", "{}");
            let behaviours = [Behaviour::Partial { answer, events: 4, end }, fine()];
            let result = outcome(protocol, PATIENCE, behaviours).await;
            assert_eq!(result, (Ok(reply("fine", &[])), 2), "{protocol:?} {end:?}");
        }
    }
}

#[tokio::test]
async fn a_stream_that_always_ends_too_early_says_so() {
    for protocol in BOTH {
        let partial = Behaviour::Partial { answer: Answer::text("ab"), events: 2, end: End::Clean };
        let result = outcome(protocol, PATIENCE, vec![partial; 3]).await;
        let detail = "the stream ended before the answer did";
        assert_eq!(result, (Err(unavailable(3, detail)), 3), "{protocol:?}");
    }
}

#[tokio::test]
async fn an_answer_that_is_whole_does_not_need_its_farewell() {
    for protocol in BOTH {
        let answer = Answer::text("fine");
        let events = answer.events(protocol).len() - 1;
        for end in [End::Clean, End::Stall, End::Cut] {
            let patience = Patience { between: Duration::from_secs(1), ..PATIENCE };
            let partial = Behaviour::Partial { answer: answer.clone(), events, end };
            let result = outcome(protocol, patience, [partial]).await;
            assert_eq!(result, (Ok(reply("fine", &[])), 1), "{protocol:?} {end:?}");
        }
    }
}

#[tokio::test]
async fn an_empty_answer_is_a_broken_one() {
    for protocol in BOTH {
        for kind in ["text/event-stream", "application/json"] {
            let empty = Behaviour::Raw(Raw::new(200, kind, Vec::<Bytes>::new()));
            let result = outcome(protocol, PATIENCE, [empty, fine()]).await;
            assert_eq!(result, (Ok(reply("fine", &[])), 2), "{protocol:?} {kind}");
        }
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unavailable() {
    for protocol in BOTH {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let model = model(protocol, &format!("http://{address}"), PATIENCE);
        match ask(&*model, &[user("hello")]).await {
            Err(ModelError::Unavailable { tries: 3, detail, .. }) => {
                assert!(detail.contains("refused"), "{detail}");
            }
            other => panic!("{protocol:?}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn silence_before_the_first_byte_ends_a_try() {
    let first_byte = Duration::from_millis(90);
    let headers_only = Raw { end: End::Stall, ..Raw::new(200, "text/event-stream", [""; 0]) };
    for protocol in BOTH {
        for silence in [Behaviour::Silence, Behaviour::Raw(headers_only.clone())] {
            let patience = Patience { first_byte, retries: 1, ..PATIENCE };
            let (result, _) = outcome(protocol, patience, vec![silence; 2]).await;
            let expected = unavailable(2, "not a byte came within 90ms");
            assert_eq!(result, Err(expected), "{protocol:?}");
        }
    }
}

#[tokio::test]
async fn silence_within_a_stream_ends_a_try() {
    for protocol in BOTH {
        let patience = Patience { between: Duration::from_millis(80), retries: 1, ..PATIENCE };
        let stall = Behaviour::Partial { answer: busy_answer(), events: 3, end: End::Stall };
        let result = outcome(protocol, patience, vec![stall; 2]).await;
        let expected = unavailable(2, "not a byte came within 80ms");
        assert_eq!(result, (Err(expected), 2), "{protocol:?}");
    }
}

#[tokio::test]
async fn all_tries_together_have_an_end() {
    for protocol in BOTH {
        let patience = Patience { whole: Duration::from_millis(300), ..PATIENCE };
        let stall = Behaviour::Partial { answer: busy_answer(), events: 3, end: End::Stall };
        let (result, _) = outcome(protocol, patience, vec![stall; 3]).await;
        let expected = unavailable(1, "no whole answer within 300ms");
        assert_eq!(result, Err(expected), "{protocol:?}");
    }
}
