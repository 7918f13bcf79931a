//! Static token files: parsed or rejected, and each token authenticates the user on its line.

use super::{
    control_plane::{user_of, with_config},
    texts,
};
use crate::Target;
use server::{Config, TokenFile};
use std::collections::BTreeMap;

pub(super) const TARGET: Target = Target { name: "token_file", check, seeds, words: WORDS };

/// Of a long file only the last lines are tried.
const MAX_TRIED: usize = 20;

const WORDS: &[&str] = &[",", "\"", "\n", "\r\n", "#", " ", "\t", "system:masters", "system:anonymous", ",,"];

fn seeds() -> Vec<Vec<u8>> {
    texts(&[
        "s3cret,alice,u1,\"devs,ops\"\nother,bob,u2\n",
        "# a remark\n\n  t,system:anonymous,u,system:unauthenticated  \nt,carol,u\n",
        "\"a,b\",dave,1,g\nx,y\n",
        ",nobody,1\n",
    ])
}

fn check(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(tokens) = TokenFile::parse(text) else { return };
    let config = Config { tokens, ..Config::default() };
    with_config(config, |server| async move {
        for (secret, name) in users_by_token(text).into_iter().rev().take(MAX_TRIED) {
            let named = user_of(&server, format!("Bearer {secret}").as_bytes()).await;
            assert_eq!(named, Some(Ok(name)), "{secret}");
            let longer = user_of(&server, format!("Bearer {secret}~").as_bytes()).await;
            assert_eq!(longer, Some(Err(401)), "{secret}~");
        }
    });
}

/// The users of secrets that stand on lines without quotes, and not elsewhere. Left out are those who may not even ask
/// who they are: the anonymous user, and members of its group.
fn users_by_token(text: &str) -> BTreeMap<&str, String> {
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let is_plain =
        |secret: &str| !secret.is_empty() && secret.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if lines().any(|line| line.contains(['"', '~']) || line.contains("system:")) {
        return BTreeMap::new();
    }
    let columns = lines().map(|line| line.split(',').collect::<Vec<_>>());
    let known = columns.filter(|columns| columns.len() >= 3 && is_plain(columns[0]));
    // Of lines with the same secret, the last counts.
    let mut users: BTreeMap<_, _> = known.map(|columns| (columns[0], columns[1].to_owned())).collect();
    users.retain(|_, user| !user.is_empty());
    users
}
