//! Layers over layers, and what is refused.

use super::*;

fn loaded(
    toml: &str,
    environment: &[(&str, &str)],
    flags: &str,
) -> Result<(Config, Layers), ConfigError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(FILE);
    std::fs::write(&path, toml).unwrap();
    let environment = environment.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
    load(Some(&path), environment, flags.parse().unwrap())
}

#[test]
fn a_flag_beats_the_environment_beats_the_file_beats_the_default() {
    let (config, layers) = loaded(
        "workers = 1\nlisten = \"127.0.0.1:1\"\n[limits]\nattempts = 7",
        &[
            ("CHANCERY_WORKERS", "2"),
            ("CHANCERY_LIMITS__LEASE_SECONDS", "4"),
            ("CHANCERY_TOKEN", "x"),
        ],
        "workers = 3",
    )
    .unwrap();
    assert_eq!(config.workers, 3);
    assert_eq!(config.listen.port(), 1);
    assert_eq!((config.limits.attempts, config.limits.lease_seconds), (7, 4));
    assert_eq!(*layers.origin("workers"), Origin::Flag);
    assert_eq!(
        *layers.origin("limits.lease_seconds"),
        Origin::Environment("CHANCERY_LIMITS__LEASE_SECONDS".to_owned())
    );
    assert_eq!(*layers.origin("limits.body_bytes"), Origin::Default);
}

#[test]
fn what_tools_reach_outside_is_the_operators_to_say() {
    let toml = "[tools]\non_unknown_outcome = \"fail\"\n[tools.git]\nremote = \"/srv/shop.git\"\n\
                [tools.docker.environments.live]\noptions = [\"--publish\", \"80:80\"]\n\
                [tools.web]\nallow_private = [\"10.0.0.0/8\"]";
    let environment = [("CHANCERY_TOOLS__WEB__SEARCH", "https://search.example/search")];
    let (config, _) = loaded(toml, &environment, "").unwrap();
    let settings = config.tools.settings();
    assert_eq!(settings.git.remote.as_deref(), Some("/srv/shop.git"));
    assert_eq!(settings.git.repository, ".");
    assert_eq!(settings.docker.environments["live"].options.len(), 2);
    assert_eq!(settings.docker.production, ["production"]);
    assert_eq!(settings.web.search.as_deref(), Some("https://search.example/search"));
    // What is shown of it can be read again.
    let shown = toml::to_string(&config).unwrap();
    assert_eq!(loaded(&shown, &[], "").unwrap().0, config);
}

#[test]
fn who_vouches_for_people_is_the_operators_to_say() {
    let toml = "[oidc]\nissuer = \"https://id.example\"\nclient_id = \"chancery\"\n\
                client_secret_env = \"OIDC_SECRET\"\nallow = [\"staff\"]\nvisit = \"8h\"\n\
                [oidc.roles]\nops = \"operator\"\n\
                [limits]\ntrusted_proxies = [\"10.0.0.0/8\"]";
    let public = ("CHANCERY_PUBLIC_URL", "https://chancery.example");
    let (config, _) = loaded(toml, &[public, ("CHANCERY_OIDC__LINK", "true")], "").unwrap();
    assert_eq!(config.public_url.as_deref(), Some(public.1));
    let oidc = config.oidc.clone().unwrap();
    assert!(oidc.link && oidc.create);
    assert_eq!(oidc.roles["ops"], crate::config::Standing::Operator);
    assert_eq!(oidc.visit.0.as_secs(), 8 * 60 * 60);
    // What is shown of it can be read again.
    let shown = toml::to_string(&config).unwrap();
    assert_eq!(loaded(&shown, &[], "").unwrap().0, config);
    for (wrong, why) in [
        (toml.replace("operator", "king"), "unknown variant `king`"),
        (toml.replace("allow", "alow"), "unknown field `alow`"),
        (toml.replace("10.0.0.0/8", "10.0.0.0/99"), "trusted_proxies"),
        (toml.replace("https://id", "http://id"), "`issuer` is an `https://` URL"),
        (format!("{toml}\nstrangers_per_minute = 0"), "limits.strangers_per_minute"),
    ] {
        let error = loaded(&wrong, &[public], "").unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    }
}

#[test]
fn an_unknown_key_is_refused_with_a_suggestion() {
    let error = loaded("databse = \"x\"", &[], "").unwrap_err().to_string();
    assert!(error.contains("unknown field `databse`"), "{error}");
    assert!(error.contains("did you mean `database`?"), "{error}");
}

#[test]
fn what_cannot_be_meant_is_refused_with_a_sentence() {
    for (toml, said) in [
        ("database = \"mysql://x\"", "postgres://"),
        ("[tiers]\nfast = \"nobody\"", "names model `nobody`"),
        ("workers = \"many\"", "workers"),
        ("listen = \"everywhere\"", "listen"),
        ("not toml", "is not TOML"),
        ("[isolation]\nmode = \"maybe\"", "maybe"),
        ("[isolation]\nprograms = [\"tools\"]", "not absolute"),
        ("[isolation.users]\nfirst = 0", "from 1000 upwards"),
        ("[isolation.limits]\nprocesses = 1", "it is 4 at least"),
        ("[models.m]\nprovider = \"oracle\"", "oracle"),
        ("[tools.git]\nremotes = \"x\"", "remotes"),
        ("[tools.docker]\napproval_lasts = \"soon\"", "soon"),
    ] {
        let error = loaded(toml, &[], "").unwrap_err().to_string();
        assert!(error.contains(said), "{toml}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn what_would_overflow_is_refused_with_its_range() {
    for (toml, said) in [
        ("workers = 0", "setting `workers` is 0; it can be 1 to 100000"),
        (
            "workers = 9223372036854775807",
            "setting `workers` is 9223372036854775807; it can be 1 to 100000",
        ),
        (
            "[limits]\nlease_seconds = 9223372036854775807",
            "setting `limits.lease_seconds` is 9223372036854775807; it can be 1 to 86400",
        ),
        (
            "[models.m]\nprovider = \"scripted\"\ntimeout_seconds = 0",
            "setting `models.m.timeout_seconds` is 0; it can be 1 to 86400",
        ),
    ] {
        assert_eq!(loaded(toml, &[], "").unwrap_err().to_string(), said);
    }
    assert!(loaded("workers = -1", &[], "").is_err());
}

#[test]
fn what_is_no_price_is_refused_with_its_setting() {
    let rule = "a price is a number from 0 to 1000000000, with six decimals at the most";
    for key in ["input_price", "output_price"] {
        for money in ["-1", "-0.5", "nan", "inf", "-inf", "1000000001", "0.0000001"] {
            let toml = format!("[models.m]\nprovider = \"scripted\"\n{key} = {money}");
            let money: f64 = money.parse().unwrap();
            let said = format!("setting `models.m.{key}` is {money}: {rule}");
            assert_eq!(loaded(&toml, &[], "").unwrap_err().to_string(), said);
        }
        let toml = format!("[models.m]\nprovider = \"scripted\"\n{key} = \"cheap\"");
        let said = loaded(&toml, &[], "").unwrap_err().to_string();
        assert!(said.starts_with(&format!("setting `models.m.{key}`")), "{said}");
    }
}

#[test]
fn prices_are_read_from_every_layer_and_shown_as_they_were_written() {
    let toml = "[models.m]\nprovider = \"scripted\"\ninput_price = 3\noutput_price = 0.1";
    let (config, _) = loaded(toml, &[], "").unwrap();
    let model = &config.models["m"];
    assert_eq!((model.input_price, model.output_price), (Some(3.0), Some(0.1)));
    let shown = toml::to_string(model).unwrap();
    assert_eq!(shown, "provider = \"scripted\"\ninput_price = 3.0\noutput_price = 0.1\n");
    let (config, _) = loaded(toml, &[("CHANCERY_MODELS__M__INPUT_PRICE", "2.5")], "").unwrap();
    assert_eq!(config.models["m"].input_price, Some(2.5));
}

#[test]
fn a_name_with_a_dot_is_one_name() {
    let toml = "[models.\"gpt-4.1\"]\nprovider = \"scripted\"\n[tiers]\nfast = \"gpt-4.1\"";
    let (config, layers) = loaded(toml, &[], "").unwrap();
    assert_eq!(config.models.keys().collect::<Vec<_>>(), ["gpt-4.1"]);
    assert!(matches!(layers.origin("models.gpt-4.1.provider"), Origin::File(_)));
}

#[test]
fn a_variable_is_read_as_what_its_setting_wants() {
    let (config, layers) = loaded(
        "[models.m]\nprovider = \"scripted\"",
        &[
            ("CHANCERY_DATA_DIR", "2026"),
            ("CHANCERY_ADDR", "127.0.0.1:9"),
            ("CHANCERY_MODELS__M__TEMPERATURE", "0.5"),
            ("CHANCERY_MODELS__M__MODEL", "4"),
        ],
        "",
    )
    .unwrap();
    assert_eq!((config.data, config.listen.port()), (PathBuf::from("2026"), 9));
    let model = &config.models["m"];
    assert_eq!((model.temperature, model.model.as_deref()), (Some(0.5), Some("4")));
    let origin = Origin::Environment("CHANCERY_DATA_DIR".to_owned());
    assert_eq!(*layers.origin("data"), origin);
    let wrong = loaded("", &[("CHANCERY_WORKERS", "many")], "").unwrap_err().to_string();
    assert!(wrong.starts_with("setting `workers` ($CHANCERY_WORKERS): "), "{wrong}");
}

#[test]
fn allows_are_counted_unless_they_are_to_be_recorded() {
    use crate::config::Allows;
    let of = |toml| loaded(toml, &[], "").map(|(config, _)| config.audit.allows);
    assert_eq!(of(""), Ok(Allows::Count));
    assert_eq!(of("[audit]\nallows = \"record\""), Ok(Allows::Record));
    assert!(of("[audit]\nallows = \"forget\"").is_err());
}
