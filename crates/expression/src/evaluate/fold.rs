//! Runs comprehensions: `all`, `exists`, `map`, `filter` and their kin, as one loop.

use super::{Local, Machine};
use crate::{error::Error, library::Outcome, plan::Loop, value::Value};

impl<'r, 'a> Machine<'r, 'a> {
    pub(super) fn eval_fold(&mut self, fold: &'r Loop) -> Outcome<'a> {
        let range = self.eval(&fold.range)?;
        let base = fold.slot as usize;
        self.locals.truncate(base);
        let start = self.eval(&fold.start);
        self.locals.truncate(base);
        self.locals.push(Local::Known(start));
        let ended = match &range {
            Value::List(list) => {
                let mut index = 0;
                self.each(fold, &mut || {
                    let item = list.at(index)?;
                    index += 1;
                    Some(if fold.two_variables {
                        (Value::Int(index as i64 - 1), Some(item))
                    } else {
                        (item, None)
                    })
                })
            }
            Value::Map(map) => {
                let mut keys = map.keys().into_iter();
                self.each(fold, &mut || {
                    let key = keys.next()?;
                    let value = if fold.two_variables { map.find(&key) } else { None };
                    Some((key, value))
                })
            }
            other if fold.two_variables => {
                Err(Error::new(format!("unsupported comprehension range type: {}", go_type(other))))
            }
            other => Err(Error::new(format!("got '{}', expected iterable type", go_type(other)))),
        };
        self.locals.truncate(base + 1);
        let result = ended.and_then(|()| self.eval(&fold.result));
        self.locals.truncate(base);
        result
    }

    fn each(
        &mut self,
        fold: &'r Loop,
        next: &mut dyn FnMut() -> Option<(Value<'a>, Option<Value<'a>>)>,
    ) -> Result<(), Error> {
        let base = fold.slot as usize;
        while let Some((first, second)) = next() {
            self.uncharged_work(1)?;
            self.locals.truncate(base + 1);
            self.locals.push(Local::Known(Ok(first)));
            if fold.two_variables {
                self.locals.push(Local::Known(Ok(second.unwrap_or(Value::Null))));
            }
            match self.eval(&fold.condition) {
                Ok(Value::Bool(false)) => break,
                Err(error) if error.is_cancelled() => return Err(error),
                _ => {}
            }
            let stepped = self.eval(&fold.step);
            if let Err(error) = &stepped
                && error.is_cancelled()
            {
                return Err(error.clone());
            }
            self.locals[base] = Local::Known(stepped);
        }
        Ok(())
    }
}

/// Kubernetes: the text names the type of the implementation.
pub(super) fn go_type(value: &Value<'_>) -> &'static str {
    match value {
        Value::Null => "types.Null",
        Value::Bool(_) => "types.Bool",
        Value::Int(_) => "types.Int",
        Value::Uint(_) => "types.Uint",
        Value::Double(_) => "types.Double",
        Value::String(_) => "types.String",
        Value::Bytes(_) => "types.Bytes",
        Value::Duration(_) => "types.Duration",
        Value::Timestamp(_) => "types.Timestamp",
        Value::Optional(_) => "*types.Optional",
        Value::Type(_) => "*types.Type",
        _ => "ref.Val",
    }
}
