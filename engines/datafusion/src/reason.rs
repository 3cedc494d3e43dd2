//! The reasons for which a node of a plan stays DataFusion's.

use std::fmt;

/// Why a node of a plan stays DataFusion's. Expressions are as `EXPLAIN` shows them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// No operator of ours does what the node does.
    Kind,
    /// An expression has no counterpart on devices, though its parts have.
    Expression {
        /// The smallest such expression.
        text: String,
        /// The types of its parts.
        of: Vec<String>,
    },
    /// An expression may be a NaN made by arithmetic, whose bits differ from one processor to another.
    Nan {
        /// The expression as DataFusion prints it.
        text: String,
    },
    /// Devices do not sort, group or join by this key.
    Key {
        /// The key as DataFusion prints it.
        text: String,
        /// The type of its values.
        of: String,
    },
    /// An aggregate or window function has no counterpart, at least not with these types and options.
    Function {
        /// The function with its arguments.
        text: String,
        /// The types of its arguments.
        of: Vec<String>,
    },
    /// Each part has a counterpart, but all of them together have none.
    Whole,
    /// It groups by sets of keys in two steps, or one set is there twice, or none has a key.
    GroupingSets,
    /// Its rows are sorted by the keys of its groups, and so are its groups.
    SortedGroups,
    /// It has a limit, or tells the scan below which rows are not needed any more.
    Narrows,
    /// It counts rows, and reads none of their columns.
    ReadsNothing,
    /// Its first step is an operator of ours. Its last step needs the rows as another node partitions them.
    LastStep,
    /// A key or the condition of a join, or a window function, has a subquery.
    Subquery,
    /// An input never ends, and a device waits for many rows before it begins.
    Endless,
    /// DataFusion is expected to be at least as fast on the CPU.
    Cpu,
    /// Its input is estimated to have so few rows that moving them to the device does not pay.
    FewRows {
        /// The number of rows that the plan's statistics say.
        rows: usize,
        /// The session's setting `bowstring.device_min_rows`.
        least: usize,
    },
    /// Its rows are in host memory, and its work alone does not pay for moving them.
    OnTheHost,
    /// It moves columns, and computes nothing.
    ComputesNothing,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |of: &[String]| match of {
            [] => String::new(),
            of => format!(" of {}", of.join(", ")),
        };
        match self {
            Reason::Kind => write!(f, "there is no such operator on devices"),
            Reason::Expression { text, of: types } => {
                write!(f, "{text}{} has no counterpart on devices", of(types))
            }
            Reason::Nan { text } => write!(f, "{text} may be a NaN, whose bits depend on the processor"),
            Reason::Key { text, of } => write!(f, "{text} of {of} is no key on devices"),
            Reason::Function { text, of: types } => {
                write!(f, "{text}{} has no counterpart on devices", of(types))
            }
            Reason::Whole => write!(f, "its expressions have counterparts one by one, but not together"),
            Reason::GroupingSets => write!(f, "its grouping sets have two steps, a set twice, or no keys"),
            Reason::SortedGroups => write!(f, "its rows are sorted by the keys of its groups"),
            Reason::Narrows => write!(f, "it needs some rows only, and may skip the others"),
            Reason::ReadsNothing => write!(f, "it counts rows, and reads no columns"),
            Reason::LastStep => {
                write!(
                    f,
                    "its first step is on the device; a node above relies on how its rows are partitioned"
                )
            }
            Reason::Subquery => write!(f, "it has a subquery, whose value is not known yet"),
            Reason::Endless => write!(f, "its input never ends, and devices wait for many rows"),
            Reason::Cpu => write!(f, "DataFusion is as fast on the CPU"),
            Reason::FewRows { rows, least } => {
                write!(f, "it reads about {rows} rows, fewer than bowstring.device_min_rows, {least}")
            }
            Reason::OnTheHost => {
                write!(f, "its rows are in host memory, and its work is too little to move them")
            }
            Reason::ComputesNothing => write!(f, "it computes nothing"),
        }
    }
}
