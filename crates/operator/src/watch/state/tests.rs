//! Every phase of a watch, with everything that it can receive there.

use super::*;
use crate::cache::test_item;

fn streaming() -> WatchState {
    WatchState { has_received: true, ..WatchState::new() }
}

fn paging(token: Option<&str>) -> WatchState {
    let phase = Phase::Paging { continue_token: token.map(str::to_owned) };
    WatchState { phase, streams_lists: false, has_received: true, ..WatchState::new() }
}

fn watching(version: u64) -> WatchState {
    WatchState { phase: Phase::Watching { version }, has_received: true, ..WatchState::new() }
}

fn before_any_event(state: WatchState) -> WatchState {
    WatchState { has_received: false, ..state }
}

fn refused(code: u16) -> Input {
    error(ApiError { code, ..ApiError::default() })
}

fn error(error: ApiError) -> Input {
    Input::Event(WatchEvent::Error(error))
}

fn item(version: u64) -> Item {
    test_item(&format!("a:1@{version}"))
}

fn applied(version: u64) -> Input {
    Input::Event(WatchEvent::Applied(item(version)))
}

fn deleted(version: u64) -> Input {
    Input::Event(WatchEvent::Deleted(item(version)))
}

fn bookmark(version: u64) -> Input {
    Input::Event(WatchEvent::Bookmark { version, ends_list: false })
}

/// `update` is what the cache does; `next` the next query if this request is over, and the failures so far.
fn check(mut state: WatchState, input: Input, update: Option<CacheUpdate>, next: Option<(Query, u32)>) {
    let case = format!("{state:?} {input:?}");
    let (found, flow) = state.step(input);
    assert_eq!(format!("{found:?}"), format!("{update:?}"), "{case}");
    let query = flow.is_break().then(|| (state.query(), state.failures()));
    assert_eq!(query, next, "{case}");
}

fn page(token: Option<&str>) -> Query {
    Query::ListPage { continue_token: token.map(str::to_owned), is_whole: false }
}

#[test]
fn lists_as_events() {
    let end = Input::Event(WatchEvent::Bookmark { version: 9, ends_list: true });
    let again = |failures| Some((Query::StreamList, failures));
    for (state, input, update, next) in [
        (streaming(), applied(3), Some(CacheUpdate::Listed(item(3))), None),
        (streaming(), deleted(3), Some(CacheUpdate::Deleted(item(3))), None),
        (streaming(), end, Some(CacheUpdate::ListComplete(9)), None),
        // The server does not know `sendInitialEvents`, and ignores it.
        (streaming(), bookmark(9), None, Some((page(None), 0))),
        (streaming(), Input::Silence, None, Some((page(None), 0))),
        (streaming(), refused(422), None, Some((page(None), 0))),
        (streaming(), refused(400), None, Some((page(None), 0))),
        (streaming(), Input::Ended, None, again(1)),
        (streaming(), Input::ConnectionLost, None, again(1)),
        (streaming(), refused(403), None, again(1)),
        (streaming(), refused(410), None, again(1)),
        (before_any_event(streaming()), Input::StaleList, None, again(1)),
    ] {
        check(state, input, update, next);
    }
}

#[test]
fn lists_in_pages() {
    let answer = |token: Option<&str>| Input::Page { version: 7, continue_token: token.map(str::to_owned) };
    for (state, input, update, next) in [
        (paging(None), answer(Some("2")), None, Some((page(Some("2")), 0))),
        (
            paging(Some("2")),
            answer(None),
            Some(CacheUpdate::ListComplete(7)),
            Some((Query::Watch { from: 7 }, 0)),
        ),
        (paging(Some("2")), Input::ConnectionLost, None, Some((page(Some("2")), 1))),
        (paging(Some("2")), refused(503), None, Some((page(Some("2")), 1))),
        (paging(Some("2")), refused(410), None, Some((page(None), 0))),
        (paging(None), refused(410), None, Some((page(None), 1))),
    ] {
        check(state, input, update, next);
    }
}

#[test]
fn watches_after_the_list() {
    let watch = |from, failures| Some((Query::Watch { from }, failures));
    let too_new = error(ApiError {
        code: 504,
        message: "Too large resource version: 5, current: 2".to_owned(),
        ..ApiError::default()
    });
    for (state, input, update, next) in [
        (watching(5), applied(6), Some(CacheUpdate::Applied(item(6))), None),
        (watching(5), deleted(6), Some(CacheUpdate::Deleted(item(6))), None),
        (watching(5), bookmark(8), Some(CacheUpdate::CaughtUpTo(8)), None),
        (watching(5), Input::Ended, None, watch(5, 0)),
        (before_any_event(watching(5)), Input::Ended, None, watch(5, 1)),
        (watching(5), Input::ConnectionLost, None, watch(5, 1)),
        (watching(5), Input::Silence, None, watch(5, 1)),
        (watching(5), refused(503), None, watch(5, 1)),
        (watching(5), refused(504), None, watch(5, 1)),
        (watching(5), refused(410), None, Some((Query::StreamList, 0))),
        (before_any_event(watching(5)), refused(410), None, Some((Query::StreamList, 1))),
        (watching(5), too_new, None, Some((Query::StreamList, 1))),
    ] {
        check(state, input, update, next);
    }
}

#[test]
fn the_version_to_resume_from_never_goes_back() {
    let mut state = watching(5);
    for (input, from) in
        [(applied(6), 6), (bookmark(9), 9), (applied(8), 9), (deleted(10), 10), (bookmark(4), 10)]
    {
        _ = state.step(input);
        assert_eq!(state.query(), Query::Watch { from });
    }
}

#[test]
fn a_server_that_refused_to_stream_a_list_is_not_asked_to_again() {
    let mut state = WatchState::new();
    _ = state.step(refused(422));
    _ = state.step(Input::Page { version: 7, continue_token: None });
    _ = state.step(refused(410));
    assert_eq!(state.query(), page(None));
}

#[test]
fn lists_that_expire_twice_are_requested_in_one_page() {
    let mut state = paging(None);
    for is_whole in [false, true, true] {
        _ = state.step(Input::Page { version: 7, continue_token: Some("2".to_owned()) });
        _ = state.step(refused(410));
        assert_eq!(state.query(), Query::ListPage { continue_token: None, is_whole });
    }
    _ = state.step(Input::Page { version: 7, continue_token: None });
    _ = state.step(refused(410));
    assert_eq!(state.query(), page(None));
}

#[test]
fn failures_add_up_until_something_is_received() {
    let mut state = watching(5);
    for failures in 1..5 {
        _ = state.step(Input::ConnectionLost);
        assert_eq!(state.failures(), failures);
    }
    _ = state.step(bookmark(6));
    assert_eq!(state.failures(), 0);
}

#[test]
fn retry_after_is_obeyed_up_to_a_minute() {
    for (seconds, expected) in [(0, 0), (7, 7), (100_000, 60)] {
        let retry_after = Duration::from_secs(seconds);
        let refused = error(ApiError { code: 429, retry_after, ..ApiError::default() });
        let (_, flow) = watching(5).step(refused);
        assert_eq!(flow, ControlFlow::Break(Duration::from_secs(expected)));
    }
}
