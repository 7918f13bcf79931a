//! Creates many objects in batches of 1, 2, 4, …, and stops after the batch in which the first one fails.

use futures::future::join_all;

/// Calls `create` for each of `count`; returns how many succeeded, and the first error.
///
/// If all would fail for the same reason (a quota, a webhook), the server is asked only a few times.
pub(crate) async fn create<E, F: Future<Output = Result<(), E>>>(
    count: usize,
    mut create: impl FnMut(usize) -> F,
) -> (usize, Result<(), E>) {
    let (mut begun, mut created, mut batch) = (0, 0, 1);
    while begun < count {
        let end = count.min(begun + batch);
        let mut failure = None;
        for result in join_all((begun..end).map(&mut create)).await {
            match result {
                Ok(()) => created += 1,
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        if let Some(error) = failure {
            return (created, Err(error));
        }
        (begun, batch) = (end, batch * 2);
    }
    (created, Ok(()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use std::cell::RefCell;

    #[test]
    fn batches_double_until_one_fails() {
        for (count, failing, expected_tried, expected_created) in [
            (0, None, 0, 0),
            (1, None, 1, 1),
            (10, None, 10, 10),
            (10, Some(0), 1, 0),
            (10, Some(1), 3, 2),
            (10, Some(4), 7, 6),
            (10, Some(9), 10, 9),
        ] {
            let tried = RefCell::new(0);
            let all = create(count, |number| {
                *tried.borrow_mut() += 1;
                async move { if Some(number) == failing { Err("refused") } else { Ok(()) } }
            });
            let (created, result) = all.now_or_never().expect("nothing waits");
            assert_eq!((*tried.borrow(), created), (expected_tried, expected_created), "{count} {failing:?}");
            assert_eq!(result.is_err(), failing.is_some());
        }
    }
}
