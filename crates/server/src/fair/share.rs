//! Division of the server's seats among priority levels: by configured shares, moved by demand.

/// The configured seats of a priority level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shares {
    pub(super) nominal: u32,
    /// The seats that it never lends.
    pub(super) least: u32,
    /// Its seats with all that it may borrow.
    pub(super) most: u32,
}

/// The configuration and demand of a priority level.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    pub(super) is_exempt: bool,
    pub(super) shares: Shares,
    /// The maximum demand in the last period.
    pub(super) high: u32,
    pub(super) smoothed: f64,
    pub(super) current: u32,
}

/// A part of a sum to divide: proportional to its target, within bounds.
#[derive(Clone, Copy, Debug)]
struct Part {
    target: f64,
    least: f64,
    most: f64,
}

/// Minimum target, so that every part has a proportion.
const MIN_TARGET: f64 = 0.001;

impl Shares {
    /// The seats of a level with `part` of `whole` shares.
    pub(super) fn new(total: u32, part: u32, whole: f64, lendable: u32, borrowing: Option<u32>) -> Shares {
        let percent = |of: u32, percent: u32| (f64::from(of) * f64::from(percent) / 100.0).round() as u32;
        let nominal = match whole > 0.0 {
            true => (f64::from(total) * f64::from(part) / whole).ceil() as u32,
            false => 0,
        };
        let borrows = borrowing.map_or(total, |borrowing| percent(nominal, borrowing));
        Shares { nominal, least: nominal.saturating_sub(percent(nominal, lendable)), most: nominal + borrows }
    }

    /// Limit on the seats of one request.
    // Kubernetes: one request must not fill all queues of its flow.
    pub(super) fn widest(&self, hand: u32) -> u32 {
        let percent = (f64::from(self.nominal) * 0.15).ceil() as u32;
        percent.min(self.nominal / hand.max(1)).max(1)
    }
}

impl Claim {
    /// The seats that it keeps regardless of other levels.
    fn floor(&self) -> u32 {
        let wanted = if self.is_exempt { self.high } else { self.high.min(self.shares.nominal) };
        self.shares.least.max(wanted)
    }
}

/// The seats of each level for the next period.
// Kubernetes: seats used by exempt levels are subtracted only if the rest does not cover what others keep.
pub(super) fn divide(claims: &[Claim]) -> Vec<u32> {
    let total: u32 = claims.iter().map(|claim| claim.shares.nominal).sum();
    let taken: u32 = claims.iter().filter(|claim| claim.is_exempt).map(Claim::floor).sum();
    let left = total.saturating_sub(taken);
    let limited = || claims.iter().filter(|claim| !claim.is_exempt);
    let least: u32 = limited().map(|claim| claim.shares.least).sum();
    let floors: u32 = limited().map(Claim::floor).sum();
    if left <= floors {
        let room = f64::from(left.saturating_sub(least)) / f64::from(floors.saturating_sub(least).max(1));
        let seats = |claim: &Claim| {
            let above = f64::from(claim.floor() - claim.shares.least);
            claim.shares.least + (above * room).round() as u32
        };
        return claims.iter().map(|it| if it.is_exempt { it.floor() } else { seats(it) }).collect();
    }
    let parts: Vec<Part> = limited()
        .map(|claim| Part {
            target: f64::from(claim.floor()).max(claim.smoothed).max(MIN_TARGET),
            least: f64::from(claim.floor()),
            most: f64::from(claim.shares.most),
        })
        .collect();
    let proportion = proportion(f64::from(total), &parts);
    let mut parts = parts.iter();
    let seats = |claim: &Claim, part: Option<&Part>| match (part, proportion) {
        (Some(part), Some(proportion)) => part.at(proportion).round() as u32,
        _ => claim.current,
    };
    claims.iter().map(|it| if it.is_exempt { it.floor() } else { seats(it, parts.next()) }).collect()
}

impl Part {
    fn at(&self, proportion: f64) -> f64 {
        (self.target * proportion).min(self.most).max(self.least)
    }
}

/// The proportion at which the parts add up to `sum`; `None` where their bounds do not allow it.
fn proportion(sum: f64, parts: &[Part]) -> Option<f64> {
    let total = |proportion: f64| parts.iter().map(|part| part.at(proportion)).sum::<f64>();
    // Between two points where a part reaches a bound, the sum is linear.
    let bounds = parts.iter().flat_map(|part| [part.least / part.target, part.most / part.target]);
    let mut bounds: Vec<f64> = bounds.collect();
    bounds.sort_by(f64::total_cmp);
    let (mut below, first) = (*bounds.first()?, total(*bounds.first()?));
    if first >= sum {
        return Some(below);
    }
    for bound in bounds {
        let (low, high) = (total(below), total(bound));
        if high >= sum {
            let part = if high > low { (sum - low) / (high - low) } else { 1.0 };
            return Some(below + (bound - below) * part);
        }
        below = bound;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(part: u32, lendable: u32, borrowing: Option<u32>, high: u32, smoothed: f64) -> Claim {
        let shares = Shares::new(600, part, 245.0, lendable, borrowing);
        Claim { is_exempt: false, shares, high, smoothed, current: shares.nominal }
    }

    #[test]
    fn shares_equal_those_of_kube_apiserver() {
        for (part, lendable, borrowing, expected) in [
            (5, 0, None, [13, 13, 613]),
            (20, 50, None, [49, 24, 649]),
            (10, 0, None, [25, 25, 625]),
            (40, 25, None, [98, 73, 698]),
            (30, 33, None, [74, 50, 674]),
            (100, 90, None, [245, 24, 845]),
            (100, 0, Some(10), [245, 245, 270]),
            (0, 0, None, [0, 0, 600]),
        ] {
            let shares = Shares::new(600, part, 245.0, lendable, borrowing);
            assert_eq!([shares.nominal, shares.least, shares.most], expected, "{part} {lendable}");
        }
        assert_eq!(Shares::new(600, 100, 245.0, 90, None).widest(6), 37);
        assert_eq!(Shares::new(600, 20, 245.0, 50, None).widest(6), 8);
        assert_eq!(Shares::new(1, 0, 1.0, 0, None).widest(6), 1);
    }

    #[test]
    fn levels_with_demand_borrow_from_idle_levels() {
        // All nominal seats are given out, and each level keeps its minimum.
        let cases: [(&str, Vec<Claim>, Vec<u32>); 4] = [
            ("equals", vec![level(100, 50, None, 10, 10.0), level(100, 50, None, 10, 10.0)], vec![245, 245]),
            (
                "one busy",
                vec![level(100, 50, None, 245, 600.0), level(100, 50, None, 0, 0.0)],
                vec![368, 122],
            ),
            (
                "no borrower",
                vec![level(100, 50, Some(0), 245, 600.0), level(100, 50, None, 0, 0.0)],
                vec![245, 245],
            ),
            (
                "both busy",
                vec![level(100, 50, None, 900, 900.0), level(100, 50, None, 900, 900.0)],
                vec![245, 245],
            ),
        ];
        for (name, claims, expected) in cases {
            assert_eq!(divide(&claims), expected, "{name}");
        }
    }

    #[test]
    fn exempt_levels_take_the_seats_they_use() {
        let exempt =
            Claim { is_exempt: true, shares: Shares::default(), high: 400, smoothed: 400.0, current: 0 };
        let busy = level(245, 50, None, 600, 600.0);
        // 200 of 600 are left, less than the 300 that are never lent.
        assert_eq!(divide(&[exempt, busy]), [400, 300]);
        let exempt = Claim { high: 200, ..exempt };
        assert_eq!(divide(&[exempt, busy]), [200, 400]);
    }
}
