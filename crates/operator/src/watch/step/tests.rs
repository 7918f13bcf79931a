//! Every place a watch can stand in, with everything that can happen to it there.

use super::*;

fn streaming() -> State {
    State { has_heard: true, ..State::new() }
}

fn paging(next: Option<&str>) -> State {
    let phase = Phase::Paging { next: next.map(str::to_owned) };
    State { phase, streams_lists: false, has_heard: true, ..State::new() }
}

fn following(version: u64) -> State {
    State { phase: Phase::Following { version }, has_heard: true, ..State::new() }
}

fn silent_so_far(state: State) -> State {
    State { has_heard: false, ..state }
}

fn refused(code: u16) -> Happening {
    Happening::Refused(Refusal { code, ..Refusal::default() })
}

fn object(version: u64) -> Happening {
    Happening::Object { version, is_removed: false }
}

fn removal(version: u64) -> Happening {
    Happening::Object { version, is_removed: true }
}

fn bookmark(version: u64) -> Happening {
    Happening::Bookmark { version, ends_list: false }
}

/// What is told, what is asked next (if the answer is not read on), and after how many failures.
fn check(mut state: State, happening: Happening, tell: Option<Tell>, ask: Option<(Ask, u32)>) {
    let story = format!("{state:?} {happening:?}");
    let (told, then) = state.step(happening);
    assert_eq!(told, tell, "{story}");
    let asked = (then != Then::Read).then(|| (state.ask(), state.failures()));
    assert_eq!(asked, ask, "{story}");
}

fn page(next: Option<&str>) -> Ask {
    Ask::Page { next: next.map(str::to_owned), is_whole: false }
}

#[test]
fn a_list_as_events() {
    let end = Happening::Bookmark { version: 9, ends_list: true };
    let again = |failures| Some((Ask::Stream, failures));
    for (state, happening, tell, ask) in [
        (streaming(), object(3), Some(Tell::Listed), None),
        (streaming(), removal(3), Some(Tell::Removed), None),
        (streaming(), end, Some(Tell::Complete(9)), None),
        // The server has ignored the wish: it has never heard of lists as events.
        (streaming(), bookmark(9), None, Some((page(None), 0))),
        (streaming(), Happening::Silent, None, Some((page(None), 0))),
        (streaming(), refused(422), None, Some((page(None), 0))),
        (streaming(), refused(400), None, Some((page(None), 0))),
        (streaming(), Happening::Ended, None, again(1)),
        (streaming(), Happening::Lost, None, again(1)),
        (streaming(), refused(403), None, again(1)),
        (streaming(), refused(410), None, again(1)),
        (silent_so_far(streaming()), Happening::Backwards, None, again(1)),
    ] {
        check(state, happening, tell, ask);
    }
}

#[test]
fn a_list_in_pages() {
    let answer = |next: Option<&str>| Happening::Page { version: 7, next: next.map(str::to_owned) };
    for (state, happening, tell, ask) in [
        (paging(None), answer(Some("2")), None, Some((page(Some("2")), 0))),
        (paging(Some("2")), answer(None), Some(Tell::Complete(7)), Some((Ask::Follow { version: 7 }, 0))),
        (paging(Some("2")), Happening::Lost, None, Some((page(Some("2")), 1))),
        (paging(Some("2")), refused(503), None, Some((page(Some("2")), 1))),
        (paging(Some("2")), refused(410), None, Some((page(None), 0))),
        (paging(None), refused(410), None, Some((page(None), 1))),
    ] {
        check(state, happening, tell, ask);
    }
}

#[test]
fn a_watch_that_follows() {
    let follow = |version, failures| Some((Ask::Follow { version }, failures));
    let too_new = Happening::Refused(Refusal {
        code: 504,
        message: "Too large resource version: 5, current: 2".to_owned(),
        ..Refusal::default()
    });
    for (state, happening, tell, ask) in [
        (following(5), object(6), Some(Tell::Changed), None),
        (following(5), removal(6), Some(Tell::Removed), None),
        (following(5), bookmark(8), Some(Tell::Reached(8)), None),
        (following(5), Happening::Ended, None, follow(5, 0)),
        (silent_so_far(following(5)), Happening::Ended, None, follow(5, 1)),
        (following(5), Happening::Lost, None, follow(5, 1)),
        (following(5), Happening::Silent, None, follow(5, 1)),
        (following(5), refused(503), None, follow(5, 1)),
        (following(5), refused(504), None, follow(5, 1)),
        (following(5), refused(410), None, Some((Ask::Stream, 0))),
        (silent_so_far(following(5)), refused(410), None, Some((Ask::Stream, 1))),
        (following(5), too_new, None, Some((Ask::Stream, 1))),
    ] {
        check(state, happening, tell, ask);
    }
}

#[test]
fn the_resume_point_moves_and_never_goes_back() {
    let mut state = following(5);
    for (happening, version) in
        [(object(6), 6), (bookmark(9), 9), (object(8), 9), (removal(10), 10), (bookmark(4), 10)]
    {
        state.step(happening);
        assert_eq!(state.ask(), Ask::Follow { version });
    }
}

#[test]
fn a_server_that_cannot_stream_lists_is_not_asked_twice() {
    let mut state = State::new();
    state.step(refused(422));
    state.step(Happening::Page { version: 7, next: None });
    state.step(refused(410));
    assert_eq!(state.ask(), page(None));
}

#[test]
fn lists_that_expire_are_asked_for_in_one_piece() {
    let mut state = paging(None);
    for is_whole in [false, true, true] {
        state.step(Happening::Page { version: 7, next: Some("2".to_owned()) });
        state.step(refused(410));
        assert_eq!(state.ask(), Ask::Page { next: None, is_whole });
    }
    state.step(Happening::Page { version: 7, next: None });
    state.step(refused(410));
    assert_eq!(state.ask(), page(None));
}

#[test]
fn failures_add_up_until_something_is_heard() {
    let mut state = following(5);
    for failures in 1..5 {
        state.step(Happening::Lost);
        assert_eq!(state.failures(), failures);
    }
    state.step(bookmark(6));
    assert_eq!(state.failures(), 0);
}

#[test]
fn a_server_that_asks_for_patience_gets_it_within_reason() {
    for (seconds, expected) in [(0, 0), (7, 7), (100_000, 60)] {
        let retry_after = Duration::from_secs(seconds);
        let refusal = Refusal { code: 429, retry_after, ..Refusal::default() };
        let (_, then) = following(5).step(Happening::Refused(refusal));
        assert_eq!(then, Then::Ask { least: Duration::from_secs(expected) });
    }
}
