//! What docker takes for one and the same image, however it is written.

const HUBS: [&str; 3] = ["", "docker.io/", "index.docker.io/"];

/// Every way to write the image that this names.
pub(super) fn spellings(image: &str) -> Vec<String> {
    let (name, version) = split(image);
    let names = match at_the_hub(name) {
        // Of another registry: docker adds nothing to it.
        None => vec![name.to_owned()],
        Some(path) => {
            let short = path.strip_prefix("library/");
            let paths = [Some(&*path), short].into_iter().flatten();
            paths.flat_map(|path| HUBS.map(|hub| format!("{hub}{path}"))).collect()
        }
    };
    let versions = match version {
        "" | ":latest" => vec!["", ":latest"],
        other => vec![other],
    };
    let all = names.iter().flat_map(|name| versions.iter().map(move |it| format!("{name}{it}")));
    all.collect()
}

/// The name, and its tag or digest with the sign before it.
fn split(image: &str) -> (&str, &str) {
    let last = image.rfind('/').map_or(0, |it| it + 1);
    let end = image[last..].find([':', '@']).map_or(image.len(), |it| last + it);
    image.split_at(end)
}

/// The path at docker's own registry. `None`: it is at another.
fn at_the_hub(name: &str) -> Option<String> {
    let path = match name.split_once('/') {
        Some(("docker.io" | "index.docker.io", path)) => path,
        Some((host, _)) if host.contains(['.', ':']) || host == "localhost" => return None,
        _ => name,
    };
    Some(if path.contains('/') { path.to_owned() } else { format!("library/{path}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_docker_takes_for_one_image_is_one_image() {
        for alike in [
            &["app", "app:latest", "docker.io/app", "index.docker.io/library/app:latest"][..],
            &["shop/api:1.4", "docker.io/shop/api:1.4", "index.docker.io/shop/api:1.4"],
            &["far.example:5000/app", "far.example:5000/app:latest"],
        ] {
            for (one, other) in alike.iter().flat_map(|it| alike.iter().map(move |to| (it, to))) {
                assert!(spellings(one).iter().any(|it| it == other), "{one} {other}");
            }
        }
        for (one, other) in [
            ("app:1", "app"),
            ("far.example/app", "app"),
            ("localhost/app", "docker.io/localhost/app"),
            ("shop/api:1.4", "library/shop/api:1.4"),
            ("app@sha256:00", "app"),
        ] {
            assert!(!spellings(one).iter().any(|it| it == other), "{one} {other}");
        }
    }
}
