//! What the check finds in an organisation's files, as a page shows it: in the reader's language,
//! made from the English that the command line and the API have.

use chancery_api::org::Mistake;

use super::html::{shown, ticked};
use super::pattern::{Pattern, in_chinese};
use super::words::Words;

/// What stands in “ ” was said by a library or by the machine, and is quoted.
const SENTENCES: &[Pattern] = &[
    // Hints.
    ("did you mean `{}`?", "是否想写 `{1}`？"),
    ("known are {}", "可用的有 {1}"),
    ("merge keys are not read: write the keys out", "不支持合并键：请逐一写出各键"),
    ("put it in quotes", "请加上引号"),
    ("write it in brackets: `[…]`", "请写在方括号内：`[…]`"),
    ("leave the key out, or write `[]` for an empty list", "去掉这个键；如需空列表，请写 `[]`"),
    (
        "letters, digits, `_`, `-` and `.`, with `*` for any of them",
        "可用字母、数字、`_`、`-` 和 `.`，`*` 代表任意字符",
    ),
    (
        "1 to 64 characters, none of them a blank, a quote, a brace, `*` or one that is not drawn",
        "1 到 64 个字符，不含空白、引号、花括号、`*` 和不可见字符",
    ),
    (
        "`always`, or `{types: […], needs: active_contract}`",
        "写 `always`，或 `{types: […], needs: active_contract}`",
    ),
    (
        "leave `types` out for every type, or leave the contact out",
        "允许所有类型请去掉 `types`；不允许通信请去掉该联系人",
    ),
    (
        "no `/` in front, and no `..`; the workspace itself is `./`",
        "开头不要写 `/`，也不要用 `..`；工作区本身写作 `./`",
    ),
    ("give one of them `approver: true`", "请给其中一人设置 `approver: true`"),
    (
        "`extends: builtin` adds to the built-in roles and agents",
        "写上 `extends: builtin` 即在内置角色和智能体的基础上添加",
    ),
    (
        "at most 64 letters, digits, `-` and `_`, not beginning with `mcp__`",
        "最多 64 个字母、数字、`-` 和 `_`，不能以 `mcp__` 开头",
    ),
    (
        "at most 32 letters, digits, `-` and single `_`, none of these at its ends",
        "最多 32 个字母、数字、`-` 和单个 `_`，首尾不能是符号",
    ),
    // The files.
    ("{} more mistakes are not shown", "另有 {1} 处错误未显示"),
    ("`{}` is not a file of an organisation", "`{1}` 不是组织文件"),
    ("`{}` is not a directory", "`{1}` 不是目录"),
    ("`{}` is not read", "不会读取 `{1}`"),
    ("there are more than {} files of rules", "规则文件超过 {1} 个"),
    (
        "`{}` is larger than a megabyte, which no file of an organisation is",
        "`{1}` 超过 1 MB，组织文件不应这么大",
    ),
    (
        "the file is larger than a megabyte, which no file of an organisation is",
        "文件超过 1 MB，组织文件不应这么大",
    ),
    ("the file cannot be read: {}", "无法读取文件：“{1}”"),
    ("this is not a file", "这不是文件"),
    ("the file is not UTF-8: byte {} is not", "文件不是 UTF-8 编码：第 {1} 个字节有误"),
    ("the file has {} bytes; the limit is {}", "文件有 {1} 字节，上限为 {2}"),
    // YAML.
    ("this is not YAML: {}", "不是有效的 YAML：“{1}”"),
    ("a file has one document, and here is another", "一个文件只能有一个文档，此处又开始了一个"),
    ("an alias cannot stand within its own anchor", "别名不能出现在自己的锚点之内"),
    ("tags (`!…`) have no meaning here", "此处不支持标签（`!…`）"),
    ("this is nested more than {} levels deep", "嵌套超过 {1} 层"),
    ("the file has more than {} values, aliases unfolded", "展开别名后，文件中的值超过 {1} 个"),
    ("a key has a name", "键不能为空"),
    ("{} cannot be a key", "{1~}不能作键"),
    ("`{}` is here twice; first in line {}", "`{1}` 重复：第 {2} 行已有"),
    // What is expected where.
    ("a list", "列表"),
    ("a mapping", "映射"),
    ("nothing", "空值"),
    ("text", "文本"),
    ("a number", "数字"),
    ("a yes or no", "真假值"),
    ("text (`{}`)", "文本（`{1}`）"),
    ("a number (`{}`)", "数字（`{1}`）"),
    ("a yes or no (`{}`)", "真假值（`{1}`）"),
    ("`true` or `false`", " `true` 或 `false`"),
    ("a whole number from {} to {}", " {1} 到 {2} 的整数"),
    ("a length of time", "时长"),
    ("the file is {} where {} belongs", "文件应为{2~}，而不是{1~}"),
    ("`{}` is {} where {} belongs", "`{1}` 应为{3~}，而不是{2~}"),
    ("`{}` is not a key that is known in `{}`", "`{2}` 中没有 `{1}` 这个键"),
    ("`{}` is not a key that is known", "没有 `{1}` 这个键"),
    ("`{}` is `{}`, which is none of {}", "`{1}` 为 `{2}`，可用的值只有 {3}"),
    ("`{}` is `{}`", "`{1}` 不能是 `{2}`"),
    ("there is no risk `{}`: {}", "没有风险级别 `{1}`：只有 {2}"),
    (
        "`{}` in `{}` is neither a tool's name nor a pattern",
        "`{2}` 中的 `{1}` 既非工具名称，也非模式",
    ),
    ("`{}` in `{}` cannot be a name", "`{2}` 中的 `{1}` 不能作名称"),
    ("`{}` in `{}` is not a path beneath the workspace", "`{2}` 中的 `{1}` 不是工作区内的路径"),
    (
        "`{}` in `{}` has braces, but is none of what they stand for",
        "`{2}` 中的 `{1}` 带有花括号，但不是可用的占位符",
    ),
    // Roles, agents and groups.
    ("`{}` names a role that does not exist: `{}`", "`{1}` 提到不存在的角色：`{2}`"),
    ("`{}` names neither a role nor an agent: `{}`", "`{1}` 提到的既非角色，也非智能体：`{2}`"),
    ("`{}` names an agent that does not exist: `{}`", "`{1}` 提到不存在的智能体：`{2}`"),
    ("`{}` names a type of mail that does not exist: `{}`", "`{1}` 提到不存在的邮件类型：`{2}`"),
    ("`{}` names no tool that is known: `{}`", "`{1}` 提到未知的工具：`{2}`"),
    ("`{}` names a capability that no tool has: `{}`", "`{1}` 提到没有工具具备的能力：`{2}`"),
    ("a circle in the chain of command: {}", "指挥链成环：{1}"),
    (
        "role `{}` of level {} reports to `{}` of level {}, which is not above it",
        "角色 `{1}`（级别 {2}）的上级 `{3}`（级别 {4}）并不比它高",
    ),
    (
        "`{}` may send `{}` to `{}`, but the type `{}` is not for that role to send",
        "`{1}` 可向 `{3}` 发送 `{2}`，但该角色无权发送 `{4}` 类型的邮件",
    ),
    ("`{}` may write to `{}`, which may not answer", "`{1}` 可写信给 `{2}`，但对方无权回信"),
    (
        "role `{}` lists `{}` and denies it by `{}`: denied it is",
        "角色 `{1}` 既列出 `{2}`，又以 `{3}` 拒绝它：以拒绝为准",
    ),
    (
        "`{}` has no `escalate` tool: when it is stuck it has no way up",
        "`{1}` 没有 `escalate` 工具：遇到困难时无法上报",
    ),
    (
        "role `{}` must ask for `{}`, but none of the users is an approver",
        "角色 `{1}` 调用 `{2}` 须经批准，但用户中没有批准人",
    ),
    ("there are no agents", "没有智能体"),
    (
        "nobody may write to agent `{}`, and it is in no group",
        "无人可写信给智能体 `{1}`，它也不属于任何小组",
    ),
    ("`{}` is the people at the top, and cannot be a role", "`{1}` 指位于最上层的人，不能作角色"),
    (
        "`{}` is of level 0, which is the board: people",
        "`{1}` 的级别为 0，而 0 级是由人组成的董事会",
    ),
    ("`{}` is empty: no mail could be sent", "`{1}` 为空：无法发送任何邮件"),
    ("`{}` is a member of `{}` twice", "`{1}` 在 `{2}` 的成员中重复"),
    ("`{}` has no members", "`{1}` 没有成员"),
    ("`{}` leads `{}`, but is none of its members", "`{1}` 是 `{2}` 的组长，却不是其成员"),
    // Tools.
    ("`{}` cannot be a command's name", "`{1}` 不能作命令的名称"),
    ("`{}` is a built-in tool, and cannot be a command too", "`{1}` 是内置工具，不能再作命令"),
    ("`{}` names no program", "`{1}` 没有写明程序"),
    ("`{}` cannot be an MCP server's name", "`{1}` 不能作 MCP 服务器的名称"),
    ("`{}` has either a `command` or a `url`", "`{1}` 须有且只有 `command` 或 `url` 之一"),
    ("`{}` has no `{}`", "`{1}` 缺少 `{2}`"),
    ("`{}` is only for a server with a `{}`", "只有带 `{2}` 的服务器才能有 `{1}`"),
    (
        "command `{}` is in the place of the tool of that name that is built in, and holds to \
         nothing of what that one holds to",
        "命令 `{1}` 取代了同名的内置工具，内置工具所遵守的规则对它均无约束",
    ),
    (
        "command `{}` runs `{}`, which lies in the workspace: who may write there decides what it \
         does",
        "命令 `{1}` 运行的 `{2}` 位于工作区内：谁能写入工作区，谁就能决定它做什么",
    ),
    (
        "the parameters of `{}` are not a JSON Schema: {}",
        "`{1}` 的参数不是有效的 JSON Schema：“{2}”",
    ),
    ("the command names no program", "命令没有写明程序"),
    ("the program itself cannot be an argument: `{}`", "程序本身不能是参数：`{1}`"),
    ("`{}` is not among the properties of the parameters", "参数的属性中没有 `{1}`"),
    ("the command has a NUL byte in it", "命令含有 NUL 字节"),
    ("`{}` has a NUL byte in it", "`{1}` 含有 NUL 字节"),
    (
        "`{}` begins with `-` and could be taken for an option; write `./-…` for a file, or ask \
         the operator to put `--` in front of `{}` in the command",
        "`{1}` 以 `-` 开头，可能被当作选项；如为文件请写 `./-…`，或请管理员在命令中的 `{2}` 前加上 `--`",
    ),
    ("two tools are named `{}`", "有两个名为 `{1}` 的工具"),
    (
        "the schema of tool `{}` is not a usable JSON Schema: {}",
        "工具 `{1}` 的格式不是可用的 JSON Schema：“{2}”",
    ),
    (
        "a name has at most 64 letters, digits, `-` and `_`, and does not begin with `mcp__`",
        "名称最多 64 个字母、数字、`-` 和 `_`，不能以 `mcp__` 开头",
    ),
    (
        "MCP server `{}`: a server's name has at most 32 letters, digits, `-` and single `_`, \
         none of these last at its ends",
        "MCP 服务器 `{1}`：名称最多 32 个字母、数字、`-` 和单个 `_`，首尾不能是符号",
    ),
    (
        "variable `{}` names the environment variable `{}`, which is not set",
        "变量 `{1}` 引用的环境变量 `{2}` 未设置",
    ),
    (
        "header `{}` names the environment variable `{}`, which is not set",
        "请求头 `{1}` 引用的环境变量 `{2}` 未设置",
    ),
    (
        "`{}` names the environment variable `{}`, which is not set",
        "`{1}` 引用的环境变量 `{2}` 未设置",
    ),
    ("header `{}` is not one that can be sent", "请求头 `{1}` 无法发送"),
    (
        "`{}` is not an address: it begins with `http://` or `https://`",
        "`{1}` 不是地址：地址以 `http://` 或 `https://` 开头",
    ),
    ("a server has either a `command` or a `url`", "服务器须有且只有 `command` 或 `url` 之一"),
    // What the settings say of tools.
    (
        "`tools.git.repository`: `{}` is not a path beneath the workspace",
        "`tools.git.repository`：`{1}` 不是工作区内的路径",
    ),
    (
        "`tools.git.remote`: `{}` is not a URL of a repository",
        "`tools.git.remote`：`{1}` 不是仓库的 URL",
    ),
    (
        "`tools.git.remote`: `{}` is neither https, http, ssh, a file: URL nor an absolute path",
        "`tools.git.remote`：`{1}` 不是 `https`、`http`、`ssh` 或 `file` 的 URL，也不是绝对路径",
    ),
    (
        "`tools.git.remote` has credentials in it: set `tools.git.authorization` to `env:NAME` \
         instead",
        "`tools.git.remote` 中带有凭据：请改用 `tools.git.authorization`，写作 `env:NAME`",
    ),
    (
        "`tools.web.search`: `{}` is not an http or https URL",
        "`tools.web.search`：`{1}` 不是 http 或 https 的 URL",
    ),
    (
        "`tools.web.allow_private`: `{}` is neither an address nor a network such as `10.0.0.0/8`",
        "`tools.web.allow_private`：`{1}` 既非地址，也非 `10.0.0.0/8` 这样的网段",
    ),
    // Rules over arguments.
    ("`permit` permits nothing here", "`permit` 在此不起作用"),
    (
        "a rule can only tighten: write `forbid`, with what is allowed in `unless`",
        "规则只能收紧：请写 `forbid`，把允许的情形写在 `unless` 中",
    ),
    ("`@{}` cannot be read: {}", "无法读取 `@{1}`：“{2}”"),
    (
        "an example is YAML: `input`, `words`, `contacts`, `time`, `tool`, `capabilities`, \
         `agent`, `role`, `user`",
        "示例用 YAML 书写，可有 `input`、`words`、`contacts`、`time`、`tool`、`capabilities`、`agent`、`role`、`user`",
    ),
    ("`@{}` means nothing", "`@{1}` 没有含义"),
    (
        "there are `@id`, `@ask`, `@deny`, `@matches` and `@matches_not`",
        "可用的有 `@id`、`@ask`、`@deny`、`@matches` 和 `@matches_not`",
    ),
    (
        "`@id` is a name of 1 to 100 characters, on one line",
        "`@id` 须为 1 到 100 个字符的名称，写在一行内",
    ),
    ("a rule asks or denies, not both", "一条规则只能询问或拒绝，不能兼有"),
    ("two rules have the id `{}`", "有两条规则的 `id` 都是 `{1}`"),
    ("the other one is `{}`", "另一条是 `{1}`"),
    (
        "a rule that names no action is on every tool: name the tools that it is for, or ask with \
         `has` first",
        "没有写明 `action` 的规则适用于所有工具：请写明所针对的工具，或先用 `has` 判断",
    ),
    ("no tool of this rule has `{}`", "此规则所针对的工具都没有 `{1}`"),
    (
        "the tools' schemas do not make a schema for rules: {}",
        "无法从各工具的格式得出规则的格式：“{1}”",
    ),
    ("the example `@{}` fails: {}", "示例 `@{1}` 未通过：{2~}"),
    ("the rule is not on the tool `{}`", "规则不针对工具 `{1}`"),
    ("the rule is on several tools: say `tool: …`", "规则针对多个工具：请写明 `tool: …`"),
    ("there is no tool `{}`", "没有工具 `{1}`"),
    ("`{}` has no argument `{}`", "`{1}` 没有参数 `{2}`"),
    ("the rule errs on it: {}", "规则对它求值出错：“{1}”"),
    ("the rule does not match it", "规则与它不符"),
    ("the rule matches it", "规则与它相符"),
    ("`{}` is no time", "`{1}` 不是时间"),
    // What holds another sentence comes last.
    ("command `{}`: {}", "命令 `{1}`：{2~}"),
    ("MCP server `{}`: {}", "MCP 服务器 `{1}`：{2~}"),
    ("workspace `{}`: {}", "工作区 `{1}`：“{2}”"),
    ("`{}`: {}", "`{1}`：{2~}"),
];

/// What a library has found, in its own words alone: in `tools.yaml` once more, and in rules.
const QUOTED: [&str; 2] = ["E110", "E401"];

/// A mistake, or a warning. All text in it is ready for a page.
#[derive(Debug)]
pub struct Finding {
    pub class: &'static str,
    pub code: String,
    pub detail: String,
    pub place: String,
    /// Empty: none.
    pub hint: String,
}

pub fn findings<'m>(found: impl IntoIterator<Item = &'m Mistake>, w: &Words) -> Vec<Finding> {
    found.into_iter().map(|it| finding(it, w)).collect()
}

fn finding(it: &Mistake, w: &Words) -> Finding {
    let said = |text: &str| {
        let chinese = w.is_chinese().then(|| in_chinese(SENTENCES, text)).flatten();
        match chinese {
            Some(chinese) => ticked(&chinese),
            None if w.is_chinese() && QUOTED.contains(&&*it.code) => {
                format!("<q lang=\"en\">{}</q>", shown(text))
            }
            None => ticked(text),
        }
    };
    Finding {
        class: if it.severity == "error" { "error" } else { "warning" },
        code: it.code.clone(),
        detail: said(&it.detail),
        place: format!("{}:{}", shown(&it.file), it.line),
        hint: it.hint.as_deref().map(said).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::pattern::sources::{between, english, is_chinese, texts, told};
    use crate::console::words::{EN, ZH};
    use crate::organisation::{load, read_files};
    use crate::view;

    /// Beside the check's own directory, where what it finds is put in words.
    const ELSEWHERE: &[&str] = &[
        include_str!("../../../runtime/src/tool/config/build.rs"),
        include_str!("../../../runtime/src/tool/command/template.rs"),
        include_str!("../../../runtime/src/rules/draft.rs"),
        include_str!("../../../runtime/src/rules/load.rs"),
        include_str!("../../../runtime/src/rules/example.rs"),
    ];
    /// The directory's files that tell the check nothing: they speak to agents, to the log, or of
    /// what a version would mean.
    const SILENT: &[&str] = &["amend.rs", "difference.rs", "reach.rs", "reload.rs"];
    /// What is no sentence, is told elsewhere, or stands in the gap of a sentence that is tried.
    const NO_SENTENCES: &[&str] = &[
        "{agents} agents, {commands} commands, {servers} MCP servers",
        "a list",
        "a mapping",
        "a yes or no",
        "a number",
        "`true` or `false`",
        "a length of time",
        "a whole number from {from} to {to}",
        "{} (`{text}`)",
        " in `{path}`",
        "a role that does not exist:",
        "neither a role nor an agent:",
        "an agent that does not exist:",
        "a type of mail that does not exist:",
        "no tool that is known:",
        "a capability that no tool has:",
        "is larger than a megabyte, which no file of an organisation is",
        "{kind} `{name}`",
        // A warning for the log.
        "`tools` says something about `{name}`, which does not exist",
        // The ends of a rule's own sentence, which rulings have.
        "the rule `{label}` forbids it",
        "the rule `{label}` wants it asked",
        "for policy `",
        "{id} ({file}:{line})",
        "{file}:{line}:{column}: {detail}{}",
        " ({it})",
        "{file}:{line}:{column}: {code} {detail}",
        " ({hint})",
    ];

    /// What may stand in a gap of a sentence; a name is what Chinese does not have to say.
    fn words(text: &str, gap: &str) -> Vec<String> {
        let kinds = ["a list", "a mapping", "nothing", "text", "a number", "a yes or no"];
        let quoted = ["text (`x`)", "a number (`7`)", "a yes or no (`true`)"];
        let belong = ["`true` or `false`", "a whole number from 1 to 9", "a length of time"];
        let words: &[&str] = match gap {
            "found" => &[kinds.as_slice(), &quoted].concat(),
            "what" if text.ends_with("belongs") => &[kinds.as_slice(), &belong].concat(),
            "what" if text.contains("names {what}") => &[
                "a role that does not exist:",
                "neither a role nor an agent:",
                "an agent that does not exist:",
                "a type of mail that does not exist:",
                "no tool that is known:",
                "a capability that no tool has:",
            ],
            "what" => &["variable `x`", "header `x`", "`tools.git.authorization`"],
            "within" => &["", " in `x`"],
            "TOO_LARGE" => &["is larger than a megabyte, which no file of an organisation is"],
            "" if text == "{} cannot be a key" => &["a list", "a mapping"],
            _ => &["名"],
        };
        words.iter().map(|it| (*it).to_owned()).collect()
    }

    /// What the check says, whichever file says it.
    fn sources() -> Vec<String> {
        let dir = chancery_testkit::package().join("src/organisation");
        let files = std::fs::read_dir(dir).unwrap().map(|it| it.unwrap().path());
        let speaks = |it: &std::path::PathBuf| {
            let name = it.file_name().unwrap().to_str().unwrap().to_owned();
            name.ends_with(".rs") && !SILENT.contains(&&*name)
        };
        let own = files.filter(speaks).map(|it| std::fs::read_to_string(it).unwrap());
        let own = own.chain([include_str!("../organisation.rs").to_owned()]);
        own.chain(ELSEWHERE.iter().map(|it| (*it).to_owned())).chain(parts()).collect()
    }

    /// Of files with more in them, what the check may come to say.
    fn parts() -> [String; 4] {
        let endpoint = include_str!("../../../runtime/src/tool/mcp/endpoint.rs");
        let repository = include_str!("../../../runtime/src/tool/git/repository.rs");
        let address = include_str!("../../../runtime/src/tool/web/address.rs");
        let registry = include_str!("../../../runtime/src/tool.rs");
        [
            // The rest is said once a server has been started.
            between(endpoint, "pub enum ConnectError {", "#[error(\"`{program}`"),
            between(repository, "fn check_url(", "\n}\n"),
            between(address, "pub fn parse(", "\n    }\n"),
            between(registry, "pub enum RegisterError {", "\n}\n"),
        ]
    }

    fn said(code: &str, detail: &str, w: &Words) -> String {
        let mistake = Mistake {
            file: "roles.yaml".to_owned(),
            line: 1,
            column: 1,
            severity: "error".to_owned(),
            code: code.to_owned(),
            detail: detail.to_owned(),
            hint: None,
        };
        finding(&mistake, w).detail
    }

    #[test]
    fn nothing_that_the_check_says_is_left_in_english() {
        let (mut count, mut left) = (0, Vec::new());
        let sources = sources();
        let all = sources.iter().flat_map(|it| texts(it));
        for text in all.filter(|it| !NO_SENTENCES.contains(&&**it)) {
            for sentence in told(&text, |gap| words(&text, gap)) {
                // What is no format has braces of its own.
                let read = [&sentence, &text].into_iter().find_map(|it| in_chinese(SENTENCES, it));
                let fine = |it: &String| is_chinese(it) && english(it).is_empty();
                if !read.as_ref().is_some_and(fine) {
                    left.push(format!("{sentence}: {read:?}"));
                }
                count += 1;
            }
        }
        assert!(left.is_empty(), "{}", left.join("\n"));
        assert!(count > 150, "{count}");
    }

    #[test]
    fn every_mistake_of_the_broken_organisation_is_said_in_chinese() {
        let dir = chancery_testkit::package().join("tests/organisation/broken");
        let (files, mistakes) = read_files(Some(&dir));
        let found = load(files, mistakes).unwrap_err();
        let found: Vec<Mistake> = found.iter().map(view::org::mistake).collect();
        assert!(found.len() > 60, "{found:?}");
        for it in &found {
            for text in [Some(&it.detail), it.hint.as_ref()].into_iter().flatten() {
                let read = in_chinese(SENTENCES, text).unwrap_or_else(|| panic!("{text}"));
                // A circle is told by names alone.
                let said = english(&read).is_empty() || text.contains('→');
                assert!(is_chinese(&read) && said, "{text}: {read}");
            }
        }
        let english = findings(&found, &EN);
        let same = english.iter().zip(&found).all(|(it, of)| it.detail == ticked(&of.detail));
        assert!(same, "the English is as it is recorded");
    }

    #[test]
    fn what_a_file_says_is_put_where_it_belongs() {
        for (english, chinese) in [
            (
                "`roles.ceo.level` is text (`high`) where a whole number from 0 to 255 belongs",
                "`roles.ceo.level` 应为 0 到 255 的整数，而不是文本（`high`）",
            ),
            ("`commands.x`: `{to}` is not among the properties of the parameters", {
                "`commands.x`：参数的属性中没有 `{to}`"
            }),
            (
                "this is not YAML: found `]` where `}` belongs",
                "不是有效的 YAML：“found `]` where `}` belongs”",
            ),
            ("`a` names no tool that is known: `b`", "`a` 提到未知的工具：`b`"),
        ] {
            assert_eq!(said("E107", english, &ZH), ticked(chinese));
        }
        let cedar = "unexpected token `x`";
        assert_eq!(said("E401", cedar, &ZH), format!("<q lang=\"en\">{cedar}</q>"));
        let set = "unexpected token <code>x</code>";
        assert_eq!([said("E401", cedar, &EN), said("E107", cedar, &ZH)], [set, set]);
    }
}
