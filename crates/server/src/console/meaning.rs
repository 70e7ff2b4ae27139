//! What another version of the organisation means, as a page shows it: in the reader's language,
//! made from the English that the audit and the command line have.

use chancery_api::org::Difference;

use super::html::{line, shown};
use super::pattern::{Pattern, in_chinese};
use super::words::Words;

const SUBJECTS: &[Pattern] = &[
    ("role {}", "角色 {1}"),
    ("agent {}", "智能体 {1}"),
    ("user {}", "用户 {1}"),
    ("group {}", "小组 {1}"),
    ("policy", "策略"),
    ("tool {}", "工具 {1}"),
    ("mail type {}", "邮件类型 {1}"),
    ("MCP server {}", "MCP 服务器 {1}"),
    ("rules {}", "规则文件 {1}"),
];

const DETAILS: &[Pattern] = &[
    ("is new", "新增"),
    ("are new", "新增"),
    ("is gone", "已移除"),
    ("are gone", "已移除"),
    ("is another", "有改动"),
    ("are others", "有改动"),
    ("gains tool {}", "获得工具 {1}"),
    ("loses tool {}", "失去工具 {1}"),
    ("lists {} by its name: its risk is waived", "按名称列出 {1}：不再考虑其风险"),
    ("lists {} by its name no more: its risk counts", "不再按名称列出 {1}：将考虑其风险"),
    ("has no limit of tools any more", "不再限制工具"),
    ("has a limit of tools now", "开始限制工具"),
    ("delegates other tools", "可委托的工具有改动"),
    ("shows the model other tools", "向模型展示的工具有改动"),
    ("may write to {} no more", "不可再写信给 {1}"),
    ("may write to {} ({})", "可写信给 {1}（{2~}）"),
    ("writes to {} on other terms: {} → {}", "写信给 {1} 的条件有改动：{2~} → {3~}"),
    ("every type", "所有类型"),
    ("every type, with an active contract", "所有类型，须有有效合同"),
    ("{}, with an active contract", "{1}，须有有效合同"),
    ("has another prompt", "提示词有改动"),
    ("has other branches", "分支有改动"),
    ("is new, role {}", "新增，角色 {1}"),
    ("is deactivated", "已停用"),
    ("is active again", "重新启用"),
    ("is of another kind", "类型有改动"),
    ("becomes an approver", "成为批准人"),
    ("is an approver no more", "不再是批准人"),
    ("has another lead", "组长有改动"),
    ("is called otherwise", "调用方式有改动"),
    ("is reached otherwise", "连接方式有改动"),
    ("reports to {} → {}", "上级 {1} → {2}"),
    ("level {} → {}", "级别 {1} → {2}"),
    ("model tier {} → {}", "模型档位 {1} → {2}"),
    ("role {} → {}", "角色 {1} → {2}"),
    ("rounds {} → {}", "轮数 {1} → {2}"),
    ("risk {} → {}", "风险 {1~} → {2~}"),
    ("low", "低"),
    ("medium", "中"),
    ("high", "高"),
    ("{} becomes {} (was {})", "{1} 变为{2~}（原为{3~}）"),
    ("no limit", "无限制"),
    ("allow", "“允许”"),
    ("require_approval", "“须批准”"),
    ("require_human", "“须真人批准”"),
    ("deny", "“拒绝”"),
    ("tools: {} is new", "工具：新增 {1}"),
    ("tools: {} is gone", "工具：移除 {1}"),
    ("deny_tools: {} is new", "拒绝的工具：新增 {1}"),
    ("deny_tools: {} is gone", "拒绝的工具：移除 {1}"),
    ("allowed_tools: {} is new", "允许的工具：新增 {1}"),
    ("allowed_tools: {} is gone", "允许的工具：移除 {1}"),
    ("denied_tools: {} is new", "拒绝的工具：新增 {1}"),
    ("denied_tools: {} is gone", "拒绝的工具：移除 {1}"),
    ("reads: {} is new", "可读取：新增 {1}"),
    ("reads: {} is gone", "可读取：移除 {1}"),
    ("writes: {} is new", "可写入：新增 {1}"),
    ("writes: {} is gone", "可写入：移除 {1}"),
    ("members: {} is new", "成员：新增 {1}"),
    ("members: {} is gone", "成员：移除 {1}"),
    ("capabilities: {} is new", "能力：新增 {1}"),
    ("capabilities: {} is gone", "能力：移除 {1}"),
];

/// One difference. All text in it is ready for a page.
#[derive(Debug)]
pub struct Means {
    pub class: String,
    pub effect: &'static str,
    pub subject: String,
    pub detail: String,
}

pub fn means(all: &[Difference], w: &'static Words) -> Vec<Means> {
    let said = |table: &[Pattern], text: &str| {
        let chinese = w.is_chinese().then(|| in_chinese(table, text)).flatten();
        chinese.unwrap_or_else(|| text.to_owned())
    };
    let one = |it: &Difference| Means {
        class: it.effect.clone(),
        effect: match &*it.effect {
            "wider" => w.effect_wider,
            "narrower" => w.effect_narrower,
            _ => w.effect_changed,
        },
        subject: line(&said(SUBJECTS, &it.subject)),
        detail: shown(&said(DETAILS, &it.detail)),
    };
    all.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::pattern::sources::{english, is_chinese, literals, told};

    const SOURCE: &str = include_str!("../organisation/difference.rs");
    /// What a contact's terms are put together from.
    const PARTS: &[&str] = &[", with an active contract"];
    /// A gap whose words are of the record.
    const NAME: &str = "名";

    fn words(text: &str, gap: &str) -> Vec<String> {
        let words: &[&str] = match gap {
            "what" if text.contains(": {entry} is") => &[
                "tools",
                "deny_tools",
                "allowed_tools",
                "denied_tools",
                "reads",
                "writes",
                "members",
                "capabilities",
            ],
            "what" => &["reports to", "level", "model tier", "role", "rounds"],
            "" if text.starts_with("risk ") => &["low", "medium", "high"],
            "" if text.contains(" becomes ") => {
                &["no limit", "7", "allow", "require_approval", "require_human", "deny"]
            }
            "" if text.contains("terms") || text.contains("({})") => &[
                "every type",
                "every type, with an active contract",
                "名, with an active contract",
            ],
            _ => &[NAME],
        };
        words.iter().map(|it| (*it).to_owned()).collect()
    }

    /// What is handed to the functions of these names first.
    fn given(to: &str) -> Vec<String> {
        let to = format!(".{to}(");
        let calls = SOURCE.split(&*to).skip(1);
        let first = calls.filter_map(|it| it.trim_start().strip_prefix('"'));
        first.map(|it| it.split('"').next().unwrap().to_owned()).collect()
    }

    #[track_caller]
    fn check(table: &[Pattern], text: &str) {
        let read = in_chinese(table, text).unwrap_or_else(|| panic!("no Chinese: {text}"));
        assert!(is_chinese(&read) && english(&read).is_empty(), "{text}: {read}");
    }

    #[test]
    fn no_difference_is_left_in_english() {
        let subjects = SOURCE.split("found.about = format!(\"").skip(1);
        let subjects: Vec<&str> = subjects.map(|it| it.split('"').next().unwrap()).collect();
        assert!(subjects.len() > 7, "{subjects:?}");
        for text in &subjects {
            told(text, |_| vec![NAME.to_owned()]).iter().for_each(|it| check(SUBJECTS, it));
        }
        check(SUBJECTS, "policy");
        let says = |it: &String| it.contains(' ') && it.contains(char::is_alphabetic);
        let details = literals(SOURCE).into_iter().filter(says);
        let details = details.filter(|it| !subjects.contains(&&**it) && !PARTS.contains(&&**it));
        let mut count = 0;
        for text in details.filter(|it| !["reports to", "model tier"].contains(&&**it)) {
            for sentence in told(&text, |gap| words(&text, gap)) {
                check(DETAILS, &sentence);
                count += 1;
            }
        }
        assert!(count > 60, "{count}");
        for what in given("value") {
            check(DETAILS, &format!("{what} {NAME} → {NAME}"));
        }
        for what in given("entries") {
            check(DETAILS, &format!("{what}: {NAME} is new"));
            check(DETAILS, &format!("{what}: {NAME} is gone"));
        }
    }
}
