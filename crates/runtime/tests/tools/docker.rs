//! A stand-in for the docker CLI: a real program that writes down how it was called.

use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use chancery_domain::event::Actor;
use chancery_domain::mail::Draft;
use chancery_runtime::clock;
use chancery_runtime::mailroom::{Mailroom, Posted, Terms};
use chancery_runtime::tool::config::Span;
use chancery_store::mail::Behalf;
use chancery_store::{Location, Store};
use serde_json::json;

use super::{House, code, org, put};

async fn house(program: &str) -> (House, Mailroom) {
    let kept = tempfile::tempdir().unwrap().keep();
    let store = Store::open(&Location::Sqlite(kept), clock::new_worker_id()).await.unwrap();
    let mailroom = Mailroom::new(store, Terms::default());
    let room = mailroom.clone();
    let house = House::with("", |place| {
        let script = place.programs.join("docker-stand-in");
        let log = place.programs.join("calls");
        let text = format!(
            "#!/bin/sh\n{{ printf '%s|' \"$@\"; echo \"host=$DOCKER_HOST\"; }} >> {}\n\
             case \"$1\" in image) exit 1;; run) [ -e {}.broken ] && exit 9;; esac\necho done\n",
            log.display(),
            log.display(),
        );
        put(&script, &text);
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        let here = script.to_string_lossy().into_owned();
        place.settings.docker.program = if program.is_empty() { here } else { program.to_owned() };
        place.settings.docker.host = Some("tcp://far:1".to_owned());
        let live = place.settings.docker.environments.get_mut("production").unwrap();
        live.options = ["--publish", "80:80"].map(str::to_owned).to_vec();
        live.host = Some("tcp://live:1".to_owned());
        place.mailroom = Some(room);
    })
    .await;
    (house, mailroom)
}

fn calls(house: &House) -> Vec<String> {
    let log = std::fs::read_to_string(house.dir.path().join("calls")).unwrap_or_default();
    let _ = std::fs::remove_file(house.dir.path().join("calls"));
    log.lines().map(str::to_owned).collect()
}

async fn approve(mailroom: &Mailroom, environment: &str, deployment: &str) {
    let fields = json!({"environment": environment, "deployment": deployment});
    let draft = Draft {
        fields: fields.as_object().unwrap().clone(),
        ..Draft::bare("devops_worker", "deployment_approval")
    };
    let behalf =
        Behalf { user: "lin".into(), project: None, delegated: None, run: None, contract: None };
    let by = Actor::Agent("it_manager".into());
    let outgoing = mailroom.from_outside(draft, "it_manager", by, behalf);
    let sent = mailroom.send(&std::sync::Arc::new(org()), outgoing).await.unwrap();
    assert!(matches!(sent, Posted::Delivered(_)), "{sent:?}");
}

#[tokio::test]
async fn production_needs_an_approval_of_this_very_deployment() {
    let (mut house, mailroom) = house("").await;
    let deploy =
        |environment: &str, image: &str| json!({"environment": environment, "deployment": image});
    let live = deploy("production", "shop/app:1.2");
    let staged =
        house.call("devops_worker", "docker_deploy", deploy("staging", "shop/app:1.2")).await;
    assert_eq!(code(&staged), "OK", "{}", staged.text);
    let run = "00000000-0000-0000-0000-000000000001";
    let called = calls(&house);
    assert_eq!(called[0], "image|inspect|--|shop/app:1.2|host=tcp://far:1");
    assert_eq!(called[1], "pull|--|shop/app:1.2|host=tcp://far:1");
    assert_eq!(called[2], "rm|--force|--|staging_app|host=tcp://far:1");
    assert!(
        called[3].starts_with("run|--detach|--name|staging_app|--label|chancery.run="),
        "{called:?}"
    );
    assert!(
        called[3].contains(&run[..8]) && called[3].ends_with("|--|shop/app:1.2|host=tcp://far:1")
    );

    for (environment, deployment) in
        [("staging", "shop/app:1.2"), ("production", "shop/app:1.3"), ("production", "shop/app:1")]
    {
        approve(&mailroom, environment, deployment).await;
        let refused = house.call("devops_worker", "docker_deploy", live.clone()).await;
        assert_eq!(code(&refused), "NOT_APPROVED", "{}", refused.text);
    }
    assert_eq!(calls(&house), Vec::<String>::new());
    approve(&mailroom, "production", "shop/app:1.2").await;
    let done = house.call("devops_worker", "docker_deploy", live.clone()).await;
    assert!(done.text.contains("approved by `it_manager`"), "{}", done.text);
    let called = calls(&house);
    assert!(called[3].contains("|--publish|80:80|--|shop/app:1.2|host=tcp://live:1"), "{called:?}");
    // It was given to one agent, and holds for no other.
    let other = house.past_the_gate("pa", "docker_deploy", live.clone(), "k").await;
    assert_eq!(code(&other), "NOT_APPROVED");
    // What was approved stays what it is.
    house.put("docker/app/Dockerfile", "FROM scratch\n");
    for tag in ["shop/app:1.2", "docker.io/shop/app:1.2"] {
        let build = json!({"tag": tag, "context": "docker/app"});
        let built = house.call("devops_worker", "docker_build", build).await;
        assert_eq!(code(&built), "ALREADY_APPROVED", "{tag}");
    }
    // Whoever may not approve any longer has not approved.
    let mut changed = org();
    changed.mail.get_mut("deployment_approval").unwrap().senders = Some(vec!["ceo".into()]);
    house.org = std::sync::Arc::new(changed);
    let refused = house.call("devops_worker", "docker_deploy", live).await;
    assert_eq!(code(&refused), "NOT_APPROVED", "{}", refused.text);
    assert_eq!(calls(&house), Vec::<String>::new());
}

#[tokio::test]
async fn an_approval_ends() {
    let (house, mailroom) = house("").await;
    approve(&mailroom, "production", "app:1").await;
    let store = mailroom.store();
    let (now, hour) = (clock::now(), jiff::SignedDuration::from_hours(1));
    let since = |at| store.deployment_approvals("devops_worker", "production", "app:1", at);
    assert_eq!(since(now.checked_sub(hour).unwrap()).await.unwrap().len(), 1);
    assert_eq!(since(now.checked_add(hour).unwrap()).await.unwrap().len(), 0);
    drop(house);
    let short = House::with("", |place| {
        place.settings.docker.approval_lasts = Span(Duration::ZERO);
        place.mailroom = Some(mailroom.clone());
    })
    .await;
    let live = json!({"environment": "production", "deployment": "app:1"});
    assert_eq!(code(&short.call("devops_worker", "docker_deploy", live).await), "NOT_APPROVED");
}

#[tokio::test]
async fn a_build_takes_what_its_agent_may_read_and_no_secret() {
    let (house, _) = house("").await;
    house.put("docker/app/Dockerfile", "FROM scratch\n");
    let build = |tag: &str, context: &str| json!({"tag": tag, "context": context});
    let built = house.call("devops_worker", "docker_build", build("app:1", "docker/app/")).await;
    assert_eq!(code(&built), "OK", "{}", built.text);
    assert_eq!(
        calls(&house),
        [
            "build|--tag|app:1|--file|./docker/app/Dockerfile|--label|chancery.agent=devops_worker|--|./docker/app|host=tcp://far:1"
        ]
    );
    house.put("src/Dockerfile", "FROM scratch\n");
    house.put("docker/leak/Dockerfile", "FROM scratch\n");
    house.put("docker/leak/deep/.env", "SECRET\n");
    for (given, expected) in [
        (build("app:1", "src"), "DENIED_AT_THE_GATE"),
        (build("app:1", "."), "DENIED_AT_THE_GATE"),
        (build("app:1", "docker/../src"), "DENIED_AT_THE_GATE"),
        (build("--privileged", "docker/app"), "DENIED_AT_THE_GATE"),
        (
            json!({"tag": "a:1", "context": "docker/app", "dockerfile": "../../src/Dockerfile"}),
            "DENIED_AT_THE_GATE",
        ),
        (build("app:1", "docker/none"), "INVALID_ARGUMENTS"),
        (build("app:1", "docker/leak"), "PROTECTED_FILE"),
    ] {
        let done = house.call("devops_worker", "docker_build", given.clone()).await;
        assert_eq!(code(&done), expected, "{given}: {}", done.text);
    }
    assert_eq!(calls(&house), Vec::<String>::new());
}

#[tokio::test]
async fn what_fails_or_is_missing_is_said() {
    let (house, _) = house("").await;
    put(&house.dir.path().join("calls.broken"), "");
    let staging = json!({"environment": "staging", "deployment": "app:1"});
    let failed = house.call("devops_worker", "docker_deploy", staging.clone()).await;
    assert_eq!(code(&failed), "COMMAND_FAILED");
    assert!(failed.text.starts_with("`docker run` failed"), "{}", failed.text);
    let unknown = json!({"environment": "prod", "deployment": "app:1"});
    let unknown = house.call("devops_worker", "docker_deploy", unknown).await;
    assert!(unknown.text.contains("there are production, staging"), "{}", unknown.text);
    let (bare, _) = self::house("no-such-docker").await;
    let missing = bare.call("devops_worker", "docker_deploy", staging).await;
    assert_eq!(code(&missing), "NOT_CONFIGURED");
    assert!(missing.text.contains("[tools.docker] program"), "{}", missing.text);
}
