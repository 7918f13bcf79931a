//! How deep an expression may nest.

/// Kubernetes: cel-go's limit for each grammar rule.
const MAX_RULE_DEPTH: u32 = 250;
/// The sum over all rules, of which a parenthesis takes four: half of a thread's stack is enough for walking
/// such a tree, even in an unoptimised build.
const MAX_DEPTH: u32 = 480;

#[derive(Clone, Copy, Debug)]
pub(super) enum Rule {
    Expr,
    Relation,
    Calc,
    Member,
}

#[derive(Debug, Default)]
pub(super) struct Depth {
    of: [u32; 4],
}

impl Depth {
    pub(super) fn enter(&mut self, rule: Rule) -> Result<(), String> {
        self.of[rule as usize] += 1;
        if self.of[rule as usize] > MAX_RULE_DEPTH || self.of.iter().sum::<u32>() > MAX_DEPTH {
            return Err(format!("expression recursion limit exceeded: {MAX_RULE_DEPTH}"));
        }
        Ok(())
    }

    pub(super) fn leave(&mut self, rule: Rule, times: u32) {
        self.of[rule as usize] -= times;
    }
}
