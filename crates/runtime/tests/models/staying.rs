//! Trouble that stays: told, and not tried again.

use super::*;

#[tokio::test]
async fn a_refusal_is_told_and_not_tried_again() {
    for protocol in BOTH {
        for status in [400, 401, 403, 404, 413, 422] {
            let result = outcome(protocol, PATIENCE, [Behaviour::status(status, "no")]).await;
            let detail = format!("HTTP {status}: no");
            assert_eq!(result, (Err(refused(&detail)), 1), "{protocol:?} {status}");
        }
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    for protocol in BOTH {
        let location = ("location", "/elsewhere/chat/completions".to_owned());
        let redirect = Raw { headers: vec![location], ..Raw::new(307, "text/plain", [""]) };
        let result = outcome(protocol, PATIENCE, [Behaviour::Raw(redirect)]).await;
        let detail = "HTTP 307 redirects to `/elsewhere/chat/completions`: if that is right, make \
                      it the `base_url`";
        assert_eq!(result, (Err(refused(detail)), 1), "{protocol:?}");
    }
}

#[tokio::test]
async fn the_key_is_not_in_what_is_shown_even_where_it_is_cut() {
    for protocol in BOTH {
        // The cut is after 300 letters, in one of these within the key.
        for padding in (0..300).step_by(16) {
            let said = format!("{}key {KEY} is wrong", "x".repeat(padding));
            let chunk = Behaviour::events([format!("data: {said}\n\n")]);
            for behaviour in [Behaviour::status(401, &said), chunk] {
                let (result, _) = outcome(protocol, PATIENCE, [behaviour]).await;
                let shown = result.unwrap_err().to_string();
                assert!(!shown.contains("sk-"), "{shown}");
            }
        }
        let model = model(protocol, "http://127.0.0.1:1", PATIENCE);
        assert!(!format!("{model:?}").contains("sk-"), "{model:?}");
    }
    assert!(!format!("{:?}", chat_config("")).contains("sk-"));
    assert!(!format!("{:?}", messages_config("")).contains("sk-"));
}

#[tokio::test]
async fn a_long_explanation_is_cut() {
    for protocol in BOTH {
        let page = Raw::new(404, "text/html", [format!("<html>{}", "定".repeat(5000))]);
        let result = outcome(protocol, PATIENCE, [Behaviour::Raw(page)]).await;
        let detail = format!("HTTP 404: <html>{}…", "定".repeat(284));
        assert_eq!(result, (Err(refused(&detail)), 1), "{protocol:?}");
    }
}

#[tokio::test]
async fn a_page_is_no_answer() {
    for protocol in BOTH {
        let page = Behaviour::Raw(Raw::new(200, "text/html", ["<h1>Log in</h1>"]));
        let result = outcome(protocol, PATIENCE, [page]).await;
        assert_malformed(result, "neither a stream nor JSON but `text/html`: <h1>Log in</h1>");
    }
}

#[tokio::test]
async fn a_chunk_that_is_no_json_is_no_answer() {
    for protocol in BOTH {
        let chunk = Behaviour::events(["data: {\"choices\": [\n\n"]);
        assert_malformed(outcome(protocol, PATIENCE, [chunk]).await, "EOF while parsing");
    }
}

#[tokio::test]
async fn a_document_without_an_answer_is_none() {
    for protocol in BOTH {
        for odd in [json!({}), json!({"choices": []}), json!([1]), json!({"content": "x"})] {
            assert_malformed(outcome(protocol, PATIENCE, [document(&odd)]).await, "");
        }
    }
}

#[tokio::test]
async fn bytes_that_are_no_text_are_no_answer() {
    for protocol in BOTH {
        let chunk = Behaviour::events([&b"data: {\"text\": \"\xff\xfe\"}\n\n"[..]]);
        assert_malformed(outcome(protocol, PATIENCE, [chunk]).await, "the stream is not UTF-8");
    }
}

#[tokio::test]
async fn a_line_without_end_is_given_up() {
    for protocol in BOTH {
        let piece = Bytes::from(vec![b'x'; 1024 * 1024]);
        let result = outcome(protocol, PATIENCE, [Behaviour::events(vec![piece; 5])]).await;
        assert_malformed(result, "an event or a line of the stream is longer than 4194304 bytes");
    }
}

#[tokio::test]
async fn an_answer_without_end_is_given_up() {
    let comment = Bytes::from([vec![b':'; 1024 * 1024], vec![b'\n']].concat());
    for (protocol, kind) in BOTH.into_iter().zip(["text/event-stream", "application/json"]) {
        let raw = Raw { end: End::Stall, ..Raw::new(200, kind, vec![comment.clone(); 33]) };
        let result = outcome(protocol, PATIENCE, [Behaviour::Raw(raw)]).await;
        assert_malformed(result, "the answer is longer than 33554432 bytes");
    }
}

#[tokio::test]
async fn an_error_inside_an_answer_is_tried_again_unless_the_request_is_to_blame() {
    let error = |kind: &str| json!({"type": "error", "error": {"type": kind, "message": "oh"}});
    let event = |error: &Value| Behaviour::events([format!("event: error\ndata: {error}\n\n")]);
    let (busy, bad) = (error("overloaded_error"), error("invalid_request_error"));
    for protocol in BOTH {
        for busy in [event(&busy), document(&busy)] {
            let result = outcome(protocol, PATIENCE, [busy, fine()]).await;
            assert_eq!(result, (Ok(reply("fine", &[])), 2), "{protocol:?}");
        }
        for bad in [event(&bad), document(&bad)] {
            let result = outcome(protocol, PATIENCE, [bad]).await;
            let expected = Err(refused("oh (invalid_request_error)"));
            assert_eq!(result, (expected, 1), "{protocol:?}");
        }
    }
}

#[tokio::test]
async fn an_answer_that_was_cut_before_any_words_is_told_apart_from_an_empty_one() {
    let chat =
        |reason: &str| json!({"choices": [{"message": {"content": ""}, "finish_reason": reason}]});
    let message = |reason: &str| json!({"content": [], "stop_reason": reason});
    let limit = "the token limit was reached before any words";
    for (protocol, written, detail) in [
        (CHAT, chat("length"), limit),
        (CHAT, chat("content_filter"), "the answer was withheld by a filter"),
        (MESSAGES, message("max_tokens"), limit),
        (MESSAGES, message("refusal"), "the model declined to answer"),
    ] {
        let result = outcome(protocol, PATIENCE, [document(&written)]).await;
        assert_eq!(result, (Err(refused(detail)), 1), "{written}");
    }
    for (protocol, written) in [(CHAT, chat("stop")), (MESSAGES, message("end_turn"))] {
        let result = outcome(protocol, PATIENCE, [document(&written)]).await;
        let (usage, model) = (Usage::default(), "asked-for".to_owned());
        assert_eq!(result, (Ok(Reply { usage, model, ..reply("", &[]) }), 1), "{written}");
    }
}
