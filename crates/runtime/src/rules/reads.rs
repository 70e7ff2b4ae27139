//! Which parts of the context a rule looks at. What no rule looks at is not made for it.

use std::collections::BTreeMap;

use cedar_policy::pst::{Clause, Expr, PrincipalConstraint, Template, Var};

/// A part of the context: all of it, or the attributes that are named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Part {
    All,
    Some(BTreeMap<String, Part>),
}

/// What a rule, or all rules on a tool, look at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Reads {
    pub context: Part,
    /// More of the agent than its id.
    pub principal: bool,
    /// What `has` asks for: it may be missing, but it must not be unheard of.
    pub asked: Vec<Vec<String>>,
}

impl Default for Part {
    fn default() -> Part {
        Part::Some(BTreeMap::new())
    }
}

impl Part {
    /// The part under a name, if it is looked at.
    pub fn under(&self, name: &str) -> Option<&Part> {
        match self {
            Part::All => Some(&Part::All),
            Part::Some(parts) => parts.get(name),
        }
    }

    fn add(&mut self, path: &[String]) {
        match (self, path) {
            (Part::All, _) => {}
            (whole @ Part::Some(_), []) => *whole = Part::All,
            (Part::Some(parts), [name, rest @ ..]) => {
                parts.entry(name.clone()).or_default().add(rest);
            }
        }
    }

    fn merge(&mut self, other: &Part) {
        match (&mut *self, other) {
            (Part::All, _) => {}
            (_, Part::All) => *self = Part::All,
            (Part::Some(parts), Part::Some(others)) => {
                for (name, other) in others {
                    parts.entry(name.clone()).or_default().merge(other);
                }
            }
        }
    }
}

impl Reads {
    pub fn of(rule: &Template) -> Reads {
        let mut reads = Reads {
            principal: matches!(
                rule.principal,
                PrincipalConstraint::In(_) | PrincipalConstraint::IsIn(_, _)
            ),
            ..Reads::default()
        };
        for clause in rule.clauses() {
            match clause {
                Clause::When(expr) | Clause::Unless(expr) => reads.walk(expr),
            }
        }
        reads
    }

    pub fn merge(&mut self, other: &Reads) {
        self.context.merge(&other.context);
        self.principal |= other.principal;
    }

    fn walk(&mut self, expr: &Expr) {
        match expr {
            Expr::Literal(_) | Expr::Slot(_) => {}
            Expr::Var(Var::Context) => self.context = Part::All,
            Expr::Var(Var::Principal) => self.principal = true,
            Expr::Var(Var::Action | Var::Resource) => {}
            Expr::UnaryOp { expr, .. } | Expr::Like { expr, .. } => self.walk(expr),
            Expr::BinaryOp { left, right, .. } => {
                self.walk(left);
                self.walk(right);
            }
            Expr::GetAttr { expr: inner, .. } => match path(expr) {
                Some(path) => self.context.add(&path),
                None => self.walk(inner),
            },
            Expr::HasAttr { expr: inner, attrs } => match path(inner) {
                Some(mut path) => {
                    path.extend(attrs.iter().map(ToString::to_string));
                    self.context.add(&path);
                    self.asked.push(path);
                }
                None => self.walk(inner),
            },
            Expr::Is { expr, in_expr, .. } => {
                self.walk(expr);
                in_expr.iter().for_each(|it| self.walk(it));
            }
            Expr::IfThenElse { cond, then_expr, else_expr } => {
                for it in [cond, then_expr, else_expr] {
                    self.walk(it);
                }
            }
            Expr::Set(items) => items.iter().for_each(|it| self.walk(it)),
            Expr::Record(fields) => fields.values().for_each(|it| self.walk(it)),
            // What is not known here may look at anything.
            _ => {
                self.context = Part::All;
                self.principal = true;
            }
        }
    }
}

/// The attributes of the context that lead to an expression.
fn path(expr: &Expr) -> Option<Vec<String>> {
    match expr {
        Expr::Var(Var::Context) => Some(Vec::new()),
        Expr::GetAttr { expr, attr } => {
            let mut path = path(expr)?;
            path.push(attr.to_string());
            Some(path)
        }
        _ => None,
    }
}
