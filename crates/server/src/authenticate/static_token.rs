//! Static bearer tokens from a file.

use super::Caller;
use std::{fs, io, path::Path};
use subtle::ConstantTimeEq;

/// A static bearer token and its user.
#[derive(Clone)]
pub struct Token {
    secret: String,
    caller: Caller,
}

impl std::fmt::Debug for Token {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "a token of {}", self.caller.name)
    }
}

/// Reads Kubernetes' token file: `token,user,uid,"group1,group2"` on each line.
#[derive(Debug)]
pub struct TokenFile;

#[derive(Debug, thiserror::Error)]
pub enum TokenFileError {
    #[error("cannot read it")]
    Io(#[from] io::Error),
    #[error("line {0}: expected at least 3 columns: token, user name, user uid")]
    TooFewColumns(usize),
    #[error("line {0}: the token is empty")]
    Empty(usize),
}

impl TokenFile {
    pub fn read(path: &Path) -> Result<Vec<Token>, TokenFileError> {
        TokenFile::parse(&fs::read_to_string(path)?)
    }

    pub fn parse(text: &str) -> Result<Vec<Token>, TokenFileError> {
        let lines = text.lines().enumerate().filter(|(_, line)| {
            let line = line.trim();
            !line.is_empty() && !line.starts_with('#')
        });
        lines.map(|(at, line)| TokenFile::line(at + 1, line)).collect()
    }

    fn line(number: usize, line: &str) -> Result<Token, TokenFileError> {
        let columns = columns(line);
        let [secret, user, uid, rest @ ..] = &columns[..] else {
            return Err(TokenFileError::TooFewColumns(number));
        };
        if secret.is_empty() {
            return Err(TokenFileError::Empty(number));
        }
        let groups = rest.first().map(String::as_str).unwrap_or_default();
        let groups = groups.split(',').map(str::trim).filter(|group| !group.is_empty()).map(str::to_owned);
        Ok(Token { secret: secret.clone(), caller: Caller::known(user, uid, groups.collect()) })
    }
}

/// Splits a line of CSV; quotes keep commas together.
fn columns(line: &str) -> Vec<String> {
    let mut columns = vec![String::new()];
    let mut quoted = false;
    for letter in line.trim().chars() {
        match letter {
            '"' => quoted = !quoted,
            ',' if !quoted => columns.push(String::new()),
            other => columns.last_mut().into_iter().for_each(|column| column.push(other)),
        }
    }
    columns
}

/// The user of a token. Always compares all tokens in constant time, so that timing reveals nothing.
pub(super) fn find(tokens: &[Token], secret: &str) -> Option<Caller> {
    let mut found = None;
    for token in tokens {
        if bool::from(token.secret.as_bytes().ct_eq(secret.as_bytes())) {
            found = Some(token.caller.clone());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_files_are_parsed_as_in_kubernetes() {
        let token = TokenFile::line(1, r#"s3cret,alice,u1,"devs,ops""#).unwrap();
        assert_eq!(token.secret, "s3cret");
        assert_eq!(token.caller, Caller::known("alice", "u1", vec!["devs".into(), "ops".into()]));
        assert!(matches!(TokenFile::line(3, "a,b"), Err(TokenFileError::TooFewColumns(3))));
        assert!(matches!(TokenFile::line(4, ",b,c"), Err(TokenFileError::Empty(4))));
        assert_eq!(format!("{token:?}"), "a token of alice");
    }
}
