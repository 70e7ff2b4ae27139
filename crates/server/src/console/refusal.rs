//! Why something was refused, for whoever reads a page. What a route says is English; a reader of
//! Chinese is told by the refusal's code, with the route's own words beside it.

use chancery_api::Problem;

use super::html::shown;
use super::words::Words;

/// Ready for a page.
pub fn said(problem: &Problem, w: &'static Words) -> String {
    let detail = shown(&problem.detail);
    // What the console itself says is in the language of the reader already.
    let is_read = problem.detail.starts_with(|it| ('\u{4e00}'..='\u{9fff}').contains(&it));
    match chinese(&problem.code).filter(|_| w.is_chinese() && !is_read) {
        Some(sentence) => format!("{sentence} <code lang=\"en\">{detail}</code>"),
        None => detail,
    }
}

fn chinese(code: &str) -> Option<&'static str> {
    Some(match code {
        "not_found" => "没有找到：可能已不存在，或不属于你。",
        "forbidden" => "你无权这样做。",
        "PERMISSION_DENIED" => "规则拒绝了它。",
        "mail_rejected" => "邮件未送达。",
        "already_decided" => "这个问题已有答复。",
        "run_ended" => "运行已结束，不再接受任何内容。",
        "not_resumable" => "只有暂停的运行，或在模型处失败的运行，才能继续。",
        "not_legal_now" => "现在不能这样做。",
        "does_not_expire" => "它不会过期，无需延长。",
        "long_enough" => "它已有允许的最长时限。",
        "asked_enough" => "已达到询问次数上限：请作出决定。",
        "nobody_to_ask" => "没有可以询问的智能体。",
        "no_answer" => "没有得到回答。",
        "unknown_member" => "该智能体不在此小组中。",
        "not_rememberable" => "此类调用每次都要询问，不能记住。",
        "not_narrower" => "规则已失效，或这样会扩大其范围。",
        "not_forkable" => "不能从这个运行分叉。",
        "organisation_changed" => "期间已有其他版本生效：请重新起草。",
        "bad_organisation" => "组织文件有错误。",
        "too_large" => "内容过大。",
        "too_long" => "内容过长。",
        "too_many_requests" => "请求过于频繁，请稍后再试。",
        "too_slow" => "请求传输过慢。",
        "unavailable" => "存储暂时不可用，请稍后再试。",
        "internal" => "服务器内部出错。",
        "method_not_allowed" => "此地址不支持这种操作。",
        "unauthenticated" => "请先登录。",
        "no_such_step" => "合同不能这样推进。",
        "no_such_place" => "运行中没有这个位置。",
        "unknown_agent" => "没有这个智能体。",
        "unknown_group" => "没有这个小组。",
        "not_here" => "不能在此进行。",
        "interrupted" => "服务器正在停止，请稍后再试。",
        "idempotency_key_reused" => "同一请求已用于其他内容。",
        "bad_request" | "bad_payload" | "unreadable" => "填写的内容有误。",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What programs alone are told, at doors that no page uses.
    const NOT_ON_PAGES: &[&str] = &["model_not_found", "protocol", "signed_in_twice"];

    #[test]
    fn every_refusal_of_a_route_is_said_in_chinese() {
        let dir = chancery_testkit::package().join("src/routes");
        let routes = std::fs::read_dir(dir).unwrap().map(|it| it.unwrap().path());
        let routes = routes.filter(|it| it.is_file() && !it.ends_with("openai.rs"));
        let mut sources: Vec<String> =
            routes.map(|it| std::fs::read_to_string(it).unwrap()).collect();
        sources.push(include_str!("../error.rs").to_owned());
        let mut count = 0;
        for source in &sources {
            for before in ["code: \"", "(StatusCode::", "let code = \""] {
                for after in source.split(before).skip(1) {
                    let line = after.lines().next().unwrap();
                    let code = match before {
                        "(StatusCode::" => line.split('"').nth(1),
                        _ => line.split('"').next(),
                    };
                    let Some(code) = code.filter(|it| !NOT_ON_PAGES.contains(it)) else { continue };
                    assert!(chinese(code).is_some(), "{code}");
                    count += 1;
                }
            }
        }
        assert!(count > 30, "{count}");
    }
}
