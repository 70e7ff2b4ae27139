//! Words of the wire in the reader's language: states, types and kinds that the record has as one
//! word. In English they are shown as they are, as logs and the command line have them; one that
//! an operator made up is shown as it is in Chinese, too.

use std::borrow::Cow;

use chancery_domain::event::Actor;

use super::words::Words;
use crate::view;

/// What a word is of: the same one means different things in two places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// The state of a contract.
    Contract,
    /// The type of a mail.
    Mail,
    Priority,
    /// The step at which a mail was rejected.
    Step,
    /// The kind of an audit's entry.
    Entry,
    /// What a subscriber is told of.
    Topic,
    Subscriber,
    Actor,
    Token,
    /// Where a memory was found.
    Tier,
    /// How capable a model is to be.
    ModelTier,
    Provider,
    /// Where a version of the organisation comes from.
    Source,
    /// What became of a call that failed or was refused.
    Code,
}

pub fn word<'a>(of: Of, wire: &'a str, w: &Words) -> &'a str {
    let chinese = table(of).iter().find(|it| it.0 == wire).filter(|_| w.is_chinese());
    chinese.map_or(wire, |it| it.1)
}

/// Who did something, in one word, as `view::actor` says it. People have their names.
pub fn actor<'a>(said: &'a str, w: &Words) -> Cow<'a, str> {
    if !w.is_chinese() {
        return said.into();
    }
    match said.split_once(':') {
        Some((kind @ ("agent" | "service"), name)) => {
            format!("{} {name}", word(Of::Actor, kind, w)).into()
        }
        _ if said == "system" => word(Of::Actor, said, w).into(),
        _ => said.into(),
    }
}

/// The same of an actor of the record.
pub fn who(by: &Actor, w: &Words) -> String {
    actor(&view::actor(by), w).into_owned()
}

fn table(of: Of) -> &'static [(&'static str, &'static str)] {
    match of {
        Of::Contract => &[
            ("pending", "待接受"),
            ("accepted", "已接受"),
            ("in_progress", "进行中"),
            ("review", "评审中"),
            ("passed", "已通过"),
            ("failed", "未通过"),
            ("escalated", "已上报"),
            ("cancelled", "已取消"),
        ],
        Of::Mail => &[
            ("contract", "合同"),
            ("report", "报告"),
            ("approval_request", "审批请求"),
            ("info", "通知"),
            ("escalation", "上报"),
            ("question", "提问"),
            ("verdict", "评定"),
            ("staffing_request", "人员请求"),
            ("tool_request", "工具请求"),
            ("tech_review", "技术评审"),
            ("feasibility_request", "可行性询问"),
            ("requirement_clarification", "需求澄清"),
            ("deployment_approval", "部署批准"),
        ],
        Of::Priority => &[("low", "低"), ("medium", "中"), ("high", "高"), ("critical", "紧急")],
        Of::Step => &[
            ("sender", "发件人"),
            ("recipient", "收件人"),
            ("contact", "联系人"),
            ("type", "类型"),
            ("contract", "合同"),
            ("attachments", "附件"),
            ("fields", "字段"),
        ],
        Of::Entry => &[
            ("ruling", "裁定"),
            ("permission.requested", "请求许可"),
            ("permission.decided", "许可已决定"),
            ("permission.escalated", "许可已上报"),
            ("permission.extended", "许可已延长"),
            ("permission.inquired", "询问智能体"),
            ("permission.expired", "许可已过期"),
            ("call.outcome", "调用结果"),
            ("rule.made", "规则已创建"),
            ("rule.revoked", "规则已撤回"),
            ("rule.narrowed", "规则已收窄"),
            ("org.changed", "组织已变更"),
            ("token.made", "令牌已创建"),
            ("token.revoked", "令牌已撤回"),
            ("sign_in", "登录"),
            ("sign_in.refused", "登录被拒"),
            ("sign_out", "退出登录"),
            ("run.completed", "运行已完成"),
            ("run.failed", "运行失败"),
            ("run.cancelled", "运行已取消"),
            ("child.spawned", "交给小组"),
            ("person.spoke", "人员发言"),
            ("wrapup.requested", "要求收尾"),
            ("pause.requested", "要求暂停"),
            ("run.unpaused", "运行已恢复"),
            ("memory.forgotten", "记忆已遗忘"),
            ("mail.rejected", "邮件被拒"),
            ("contract.changed", "合同已变更"),
        ],
        Of::Topic => &[
            ("run.created", "运行已创建"),
            ("run.started", "运行已开始"),
            ("memory.recalled", "已回忆"),
            ("message.user", "人员发言"),
            ("batch.proposed", "批次已提出"),
            ("permission.updated", "许可已决定"),
            ("tool.refused", "调用被拒绝"),
            ("tool.started", "调用已开始"),
            ("tool.finished", "调用已结束"),
            ("tool.retried", "调用已重试"),
            ("permission.requested", "请求许可"),
            ("permission.escalated", "许可已上报"),
            ("permission.extended", "许可已延长"),
            ("permission.inquired", "询问智能体"),
            ("permission.explained", "智能体已说明"),
            ("batch.closed", "批次已结束"),
            ("wait.began", "开始等待信号"),
            ("signal.received", "已收到信号"),
            ("wait.expired", "等待信号已超时"),
            ("child.spawned", "交给小组"),
            ("child.ended", "小组已结束"),
            ("turn.began", "成员开始发言"),
            ("turn.ended", "成员发言结束"),
            ("group.concluded", "小组已得出结论"),
            ("wrapup.requested", "要求收尾"),
            ("pause.requested", "要求暂停"),
            ("run.paused", "运行已暂停"),
            ("run.unpaused", "运行已恢复"),
            ("run.completed", "运行已完成"),
            ("run.failed", "运行失败"),
            ("run.cancelled", "运行已取消"),
            ("run.resumed", "运行已继续"),
            ("escalation.board", "上报董事会"),
            ("test", "测试"),
        ],
        Of::Subscriber => &[("webhook", "网络回调"), ("smtp", "邮件"), ("otlp", "遥测")],
        Of::Actor => {
            &[("user", "人员"), ("service", "程序"), ("agent", "智能体"), ("system", "系统")]
        }
        Of::Token => &[("human", "人员"), ("service", "程序"), ("agent", "智能体")],
        Of::Tier => &[
            ("all", "全部"),
            ("preferences", "偏好"),
            ("enterprise", "企业"),
            ("history", "历史"),
            ("blackboard", "黑板"),
            ("project", "项目"),
        ],
        Of::ModelTier => &[("capable", "强"), ("balanced", "均衡"), ("fast", "快")],
        // Two of them are names.
        Of::Provider => &[("openai", "OpenAI"), ("anthropic", "Anthropic"), ("scripted", "脚本")],
        Of::Source => &[("built-in", "内置"), ("files", "文件"), ("api", "接口")],
        Of::Code => &[
            ("ABORTED", "已中止"),
            ("ALREADY_APPROVED", "已批准过"),
            ("ALREADY_RAISED", "已上报过"),
            ("CANCELLED", "已取消"),
            ("COMMAND_FAILED", "命令失败"),
            ("CONFLICT", "冲突"),
            ("DENIED", "已拒绝"),
            ("EMPTY_GROUP", "小组无人在岗"),
            ("EXISTS", "已存在"),
            ("EXPIRED", "已过期"),
            ("FETCH_FAILED", "获取失败"),
            ("GIT_FAILED", "版本库操作失败"),
            ("GROUP_ABOVE", "小组已在上级运行中"),
            ("GROUP_RUN_CANCELLED", "小组运行已取消"),
            ("GROUP_RUN_FAILED", "小组运行失败"),
            ("INPUT_REQUIRED", "需要输入"),
            ("INVALID_ARGUMENTS", "参数无效"),
            ("INVALID_PATH", "路径无效"),
            ("INVALID_YAML", "格式无效"),
            ("IO_ERROR", "读写出错"),
            ("ISOLATION_UNAVAILABLE", "隔离不可用"),
            ("KEY_USED", "键已使用"),
            ("MAIL_REJECTED", "邮件被拒"),
            ("NO_BRANCH", "没有该分支"),
            ("NOT_APPROVED", "未获批准"),
            ("NOT_A_FILE", "不是文件"),
            ("NOT_CONFIGURED", "未配置"),
            ("NOT_FOUND", "未找到"),
            ("NOT_HERE", "不能在此进行"),
            ("NOT_NOW", "现在不能进行"),
            ("NOT_POSSIBLE", "无法进行"),
            ("NOT_TEXT", "不是文本"),
            ("NOT_THE_LEAD", "不是组长"),
            ("OUTCOME_UNKNOWN", "结果未知"),
            ("OUTSIDE_WORKSPACE", "超出工作区"),
            ("PERMISSION_DENIED", "被拒绝"),
            ("PERMISSION_EXPIRED", "许可已过期"),
            ("PRIVATE_ADDRESS", "内部地址"),
            ("PROTECTED_FILE", "受保护的文件"),
            ("TIMEOUT", "超时"),
            ("TOOL_ERROR", "工具出错"),
            ("TOO_DEEP", "层级过深"),
            ("TOO_LARGE", "过大"),
            ("TOO_MANY", "过多"),
            ("UNAVAILABLE", "不可用"),
            ("UNREACHABLE", "无法连接"),
            ("UNKNOWN_GROUP", "没有该小组"),
            ("UNKNOWN_TOOL", "没有该工具"),
        ],
    }
}

#[cfg(test)]
mod tests {
    use chancery_domain::contract::State;
    use chancery_domain::event::Event;
    use chancery_domain::mail::{Priority, Step};

    use super::*;
    use crate::console::words::{EN, ZH};

    #[track_caller]
    fn check(of: Of, wire: &str) {
        assert_eq!(word(of, wire, &EN), wire);
        let chinese = word(of, wire, &ZH);
        assert!(chinese.chars().all(|it| !it.is_ascii()), "{of:?} {wire} is not translated");
    }

    #[test]
    fn every_word_of_the_record_is_said_in_chinese() {
        State::ALL.iter().for_each(|it| check(Of::Contract, it.as_str()));
        Step::ALL.iter().for_each(|it| check(Of::Step, it.as_str()));
        Priority::ALL.iter().for_each(|it| check(Of::Priority, it.as_str()));
        let builtin = include_str!("../organisation/builtin/mail.yaml");
        let types = builtin.lines().filter_map(|it| it.strip_prefix("  ")?.strip_suffix(':'));
        let types: Vec<&str> = types.filter(|it| !it.starts_with(' ')).collect();
        assert!(types.len() > 10, "{types:?}");
        types.iter().for_each(|it| check(Of::Mail, it));
        let (_, kinds) =
            include_str!("../../../domain/src/audit.rs").split_once("pub mod kind {").unwrap();
        let kinds = kinds.split("\n}").next().unwrap().lines();
        let kinds: Vec<&str> = kinds.filter_map(|it| it.split('"').nth(1)).collect();
        assert!(kinds.len() > 20, "{kinds:?}");
        kinds.iter().for_each(|it| check(Of::Entry, it));
        assert_eq!(word(Of::Mail, "of_our_own", &ZH), "of_our_own");
        Event::KINDS
            .iter()
            .chain(&["escalation.board", "test"])
            .for_each(|it| check(Of::Topic, it));
        ["webhook", "smtp", "otlp"].iter().for_each(|it| check(Of::Subscriber, it));
        ["capable", "balanced", "fast"].iter().for_each(|it| check(Of::ModelTier, it));
        ["built-in", "files", "api"].iter().for_each(|it| check(Of::Source, it));
        assert_eq!(actor("agent:pa", &ZH), "智能体 pa");
        assert_eq!(["system", "lin", "lin:x"].map(|it| actor(it, &ZH)), ["系统", "lin", "lin:x"]);
        assert_eq!(actor("agent:pa", &EN), "agent:pa");
    }

    /// What becomes of calls is said all over the runtime; what looks like a code there is one,
    /// but for these.
    const NO_CODES: &[&str] = &[
        "DECISION",
        "DELIVERABLE",
        "EVIDENCE",
        "FINDING",
        "NOTE",
        "TODO",
        "PASS",
        "FAIL",
        "HOME",
        "LANG",
        "PATH",
    ];

    #[test]
    fn every_code_of_a_call_that_came_to_nothing_is_said_in_chinese() {
        let crates = chancery_testkit::package().join("..");
        let mut found = std::collections::BTreeSet::new();
        let mut left = vec![crates.join("runtime/src"), crates.join("domain/src")];
        while let Some(path) = left.pop() {
            if path.is_dir() {
                left.extend(std::fs::read_dir(path).unwrap().map(|it| it.unwrap().path()));
                continue;
            }
            let source = std::fs::read_to_string(path).unwrap();
            let code = source.split("#[cfg(test)]").next().unwrap();
            for before in ["error(", "=> ", "code: ", "failure(", "CODE: &str = "] {
                let after = code.split(before).skip(1);
                let after = after.filter_map(|it| it.trim_start().strip_prefix('"'));
                found.extend(after.map(|it| it.split('"').next().unwrap().to_owned()));
            }
        }
        let spelt = |it: &String| {
            it.len() > 3 && it.bytes().all(|it| it.is_ascii_uppercase() || it == b'_')
        };
        found.retain(|it| spelt(it) && !NO_CODES.contains(&&**it));
        assert!(found.len() > 30, "{found:?}");
        found.iter().for_each(|it| check(Of::Code, it));
    }
}
