//! Window frames that hold no row whatever the data: `ROWS BETWEEN 1 PRECEDING AND 10 PRECEDING`.
//!
//! DataFusion refuses them. In PostgreSQL `count` is 0 there, and everything else NULL.

use sqlparser::ast::{
    CaseWhen, Expr, Function, Value, WindowFrameBound, WindowType,
    helpers::attached_token::AttachedToken,
};

use super::syntax::call;

/// What a call over such a frame stands for; `None` for any other call.
pub(super) fn without_rows(function: &Function) -> Option<Expr> {
    let Some(WindowType::WindowSpec(window)) = &function.over else { return None };
    let frame = window.window_frame.as_ref()?;
    if !ends_before_it_starts(&frame.start_bound, frame.end_bound.as_ref()?) {
        return None;
    }
    let mut of_all = function.clone();
    if let Some(WindowType::WindowSpec(window)) = &mut of_all.over {
        window.window_frame = None;
    }
    // The call stays for its type.
    let nothing = Expr::Case {
        case_token: AttachedToken::empty(),
        end_token: AttachedToken::empty(),
        operand: None,
        conditions: vec![CaseWhen {
            condition: Expr::value(Value::Boolean(false)),
            result: Expr::Function(of_all),
        }],
        else_result: None,
    };
    let counts = function.name.to_string().eq_ignore_ascii_case("count");
    let zero = || Expr::value(Value::Number("0".to_owned(), false));
    Some(if counts { call("coalesce", vec![nothing, zero()]) } else { nothing })
}

fn ends_before_it_starts(start: &WindowFrameBound, end: &WindowFrameBound) -> bool {
    use WindowFrameBound::{Following, Preceding};
    match (start, end) {
        (Preceding(Some(start)), Preceding(Some(end))) => {
            number(start).zip(number(end)).is_some_and(|(start, end)| start < end)
        }
        (Following(Some(start)), Following(Some(end))) => {
            number(start).zip(number(end)).is_some_and(|(start, end)| start > end)
        }
        _ => false,
    }
}

fn number(bound: &Expr) -> Option<f64> {
    match bound {
        Expr::Value(value) => match &value.value {
            Value::Number(digits, _) => digits.parse().ok(),
            _ => None,
        },
        _ => None,
    }
}
