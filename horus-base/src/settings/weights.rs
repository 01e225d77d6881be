//! The grammar of `HORUS_WEIGHTS`.

use std::fmt;

/// The division of rows among ranks of unequal speed.
#[derive(Clone, Debug, PartialEq)]
pub enum Weights {
    /// `1,2,1`: a weight for each rank.
    Ranks(Vec<f64>),
    /// `node:2(1,3),1`: a weight for each node.
    Nodes(Vec<NodeWeights>),
    /// `measure`: each rank's measured speed.
    Measure,
}

impl std::str::FromStr for Weights {
    type Err = String;
    fn from_str(text: &str) -> Result<Weights, String> {
        match text.strip_prefix("node:") {
            _ if text == "measure" => Ok(Weights::Measure),
            Some(rest) => nodes(rest).map(Weights::Nodes),
            None => list(text).map(Weights::Ranks),
        }
    }
}

impl fmt::Display for Weights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list = |weights: &[f64]| weights.iter().map(f64::to_string).collect::<Vec<_>>().join(",");
        match self {
            Weights::Measure => f.write_str("measure"),
            Weights::Ranks(weights) => f.write_str(&list(weights)),
            Weights::Nodes(nodes) => {
                let node = |n: &NodeWeights| match &n.within {
                    Some(within) => format!("{}({})", n.weight, list(within)),
                    None => n.weight.to_string(),
                };
                write!(f, "node:{}", nodes.iter().map(node).collect::<Vec<_>>().join(","))
            }
        }
    }
}

/// Weights of a node and its ranks.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeWeights {
    /// The weight of the node.
    pub weight: f64,
    /// Weights of its ranks; equal if absent.
    pub within: Option<Vec<f64>>,
}

/// `2(1,3),1`
fn nodes(text: &str) -> Result<Vec<NodeWeights>, String> {
    let nodes = split(text)?.into_iter().map(node).collect::<Result<Vec<NodeWeights>, String>>()?;
    some_work(nodes.iter().map(|n| n.weight))?;
    Ok(nodes)
}

/// `2(1,3)` or `1`
fn node(text: &str) -> Result<NodeWeights, String> {
    match text.trim().strip_suffix(')').and_then(|t| t.split_once('(')) {
        Some((weight, within)) => {
            let within = list(within).map_err(|why| format!("{text}: {why}"))?;
            Ok(NodeWeights { weight: number(weight)?, within: Some(within) })
        }
        None => Ok(NodeWeights { weight: number(text)?, within: None }),
    }
}

/// `1,3`
fn list(text: &str) -> Result<Vec<f64>, String> {
    let weights = text.split(',').map(number).collect::<Result<Vec<f64>, String>>()?;
    some_work(weights.iter().copied())?;
    Ok(weights)
}

fn number(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(w) if w.is_finite() && w >= 0.0 => Ok(w),
        Ok(w) => Err(format!("{w} is not a weight: weights are finite and not negative")),
        Err(_) => Err(format!("{text:?} is not a number (write `1,2,1`, `node:2,1`, `node:2(1,3),1` or `measure`)")),
    }
}

fn some_work(mut weights: impl Iterator<Item = f64>) -> Result<(), String> {
    match weights.any(|w| w > 0.0) {
        true => Ok(()),
        false => Err("all weights are zero; at least one must be positive".into()),
    }
}

/// Splits at commas outside parentheses.
fn split(text: &str) -> Result<Vec<&str>, String> {
    let (mut parts, mut start, mut open) = (Vec::new(), 0, false);
    for (at, c) in text.char_indices() {
        match (c, open) {
            ('(', false) => open = true,
            (')', true) => open = false,
            ('(', true) => {
                return Err("nested parentheses; there are two levels, nodes and their ranks".into());
            }
            (')', false) => return Err("unmatched closing parenthesis".into()),
            (',', false) => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    if open {
        return Err("unmatched opening parenthesis".into());
    }
    parts.push(&text[start..]);
    Ok(parts)
}
