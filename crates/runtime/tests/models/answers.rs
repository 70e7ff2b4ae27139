//! Answers, whole and in pieces.

use super::*;

#[tokio::test]
async fn words_and_parallel_calls_are_put_together_from_many_fragments() {
    for protocol in BOTH {
        for fragment in [1, 3, 1000] {
            let answer = Answer { fragment, ..busy_answer() };
            let result = outcome(protocol, PATIENCE, [Behaviour::Stream(answer)]).await;
            assert_eq!(result, (Ok(busy_reply()), 1), "{protocol:?} by {fragment}");
        }
    }
}

#[tokio::test]
async fn a_stream_may_be_cut_into_pieces_anywhere() {
    for protocol in BOTH {
        for bytes in [1, 7, 100_000] {
            let sliced = Behaviour::Sliced { answer: busy_answer(), bytes };
            let result = outcome(protocol, PATIENCE, [sliced]).await;
            assert_eq!(result, (Ok(busy_reply()), 1), "{protocol:?} by {bytes}");
        }
    }
}

#[tokio::test]
async fn an_answer_in_one_document_is_as_good_as_a_stream() {
    for protocol in BOTH {
        let answer = Answer::text("Hm.").and_call("read_logs", r#"{"n":1}"#);
        let result = outcome(protocol, PATIENCE, [Behaviour::Plain(answer)]).await;
        let expected = reply("Hm.", &[("fake_1", "read_logs", r#"{"n":1}"#)]);
        assert_eq!(result, (Ok(expected), 1), "{protocol:?}");
    }
}

#[tokio::test]
async fn a_call_without_arguments_has_an_empty_object() {
    for protocol in BOTH {
        let answer = Answer::call("read_logs", "");
        let result = outcome(protocol, PATIENCE, [Behaviour::Stream(answer)]).await;
        assert_eq!(result, (Ok(reply("", &[("fake_1", "read_logs", "{}")])), 1), "{protocol:?}");
    }
}

#[tokio::test]
async fn arguments_that_are_no_json_are_passed_on_as_they_are() {
    for protocol in BOTH {
        let answer = Answer::call("read_logs", r#"{"service": "#);
        let result = outcome(protocol, PATIENCE, [Behaviour::Stream(answer)]).await;
        let expected = reply("", &[("fake_1", "read_logs", r#"{"service": "#)]);
        assert_eq!(result, (Ok(expected), 1), "{protocol:?}");
    }
}

#[tokio::test]
async fn an_id_that_an_earlier_call_has_is_replaced() {
    for protocol in BOTH {
        let server = FakeModel::start().await.unwrap();
        server.otherwise(|_, _| Behaviour::Stream(Answer::call("read_logs", "{}")));
        let model = model(protocol, &url(&server, protocol), PATIENCE);
        let (tool, arguments) = ("read_logs".to_owned(), json!({}));
        let earlier = Arc::new(Call { id: "fake_1".into(), tool, arguments });
        let messages = [
            user("hello"),
            Message::Assistant { text: String::new(), calls: vec![earlier] },
            Message::Tool { call: "fake_1".into(), result: CallResult::ok("nothing") },
        ];
        let result = ask(&*model, &messages).await;
        assert_eq!(result, Ok(reply("", &[("call_2", "read_logs", "{}")])), "{protocol:?}");
    }
}

#[tokio::test]
async fn one_connection_serves_one_question_after_the_other() {
    for protocol in BOTH {
        let server = FakeModel::start().await.unwrap();
        server.otherwise(|_, _| fine());
        let model = model(protocol, &url(&server, protocol), PATIENCE);
        for _ in 0..3 {
            ask(&*model, &[user("hello")]).await.unwrap();
        }
        let [first, second, third] = server.requests().try_into().unwrap();
        assert_eq!((first.peer, first.peer), (second.peer, third.peer), "{protocol:?}");
    }
}
