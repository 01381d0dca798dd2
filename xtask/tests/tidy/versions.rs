//! One version of everything that is packaged.

use crate::files::root;

fn text(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The first `version = "…"` of a text.
fn version(text: &str) -> Option<&str> {
    text.split_once("version = \"")?.1.split_once('"').map(|(version, _)| version)
}

#[test]
fn manifests_and_changelog_name_one_version() {
    let manifest = text("Cargo.toml");
    let (_, package) = manifest.split_once("[workspace.package]").expect("the workspace's package");
    let ours = version(package).expect("its version");
    let others = ["runtime/Cargo.toml", "plugin/Cargo.toml"];
    let other = others.iter().filter(|path| version(&text(path)) != Some(ours)).collect::<Vec<_>>();
    assert!(other.is_empty(), "another version than {ours}: {other:?}");
    let dependencies = manifest.lines().filter(|line| line.contains("path = \"crates/"));
    let stale: Vec<&str> = dependencies.filter(|line| version(line) != Some(ours)).collect();
    assert!(stale.is_empty(), "dependencies of another version than {ours}: {stale:?}");
    let changes = text("CHANGELOG.md");
    let latest = changes.lines().filter_map(|line| line.strip_prefix("## [")).next().expect("what has changed");
    let released = latest.split(']').next();
    assert!(released == Some("Unreleased") || released == Some(ours), "CHANGELOG.md begins with {latest}, not with {ours}");
}
