//! Translates DataFusion's hash joins to ours, over the columns that they need.

use std::sync::Arc;

use arrow_schema::SchemaRef;
use bowstring::compute::{JoinKind, JoinOptions};
use datafusion::arrow::datatypes::{DataType, Schema as TheirSchema};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{JoinSide, JoinType, NullEquality, internal_err};
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_plan::joins::utils::JoinFilter;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::{ExecutionPlan, PhysicalExpr};

use crate::bounds::Narrowed;
use crate::expression::translate;
use crate::inputs::Inputs;
use crate::keys::columns_of;
use crate::made::{Made, has_type, options};
use crate::rows::Rows;
use crate::subquery::has_subquery;

/// A join of ours, over the columns that it needs.
#[derive(Debug)]
pub(crate) struct Join {
    pub left: Side,
    pub right: Side,
    pub options: JoinOptions,
    /// The column of our result that each output column is.
    pub outputs: Vec<usize>,
    /// Whether DataFusion reads no right row if there is no left row.
    pub ends_without_rows: bool,
    /// Whether it reads none if no left row can have a partner.
    pub ends_without_keys: bool,
    /// Whether all right partitions share one left side.
    pub shares_left: bool,
    /// Whether rows may come in another order than the right ones: then there may be more than a device has
    /// memory for.
    pub may_be_spilled: bool,
    /// The filter of the right side that the left keys narrow.
    pub narrowed: Option<Narrowed>,
}

/// The columns that a join reads of one side.
#[derive(Debug)]
pub(crate) struct Side {
    /// The keys, over the columns that are read.
    pub keys: Rows,
    /// The first of those columns, which the join returns or its condition reads.
    pub moved: SchemaRef,
}

/// A column of a join's result.
#[derive(Clone, Copy)]
enum Place {
    Left(usize),
    Right(usize),
    Mark,
}

impl Join {
    /// Translates a join; `None` if any part of it has no counterpart.
    pub fn translate(join: &HashJoinExec) -> Option<Join> {
        // Ours knows of nulls only where nothing but one key decides.
        if join.null_aware && (join.filter().is_some() || join.on().len() != 1) {
            return None;
        }
        // Keys and the condition are bound to literals, and the value of a subquery is that of one run.
        if has_subqueries(join) {
            return None;
        }
        let (left, right) = (join.left().schema(), join.right().schema());
        let mut places = places(*join.join_type(), left.fields().len(), right.fields().len());
        if let Some(projection) = &join.projection {
            places = projection.iter().map(|column| places.get(*column).copied()).collect::<Option<_>>()?;
        }
        let (mut lefts, mut rights) = (Inputs::of(&left), Inputs::of(&right));
        for place in &places {
            match place {
                Place::Left(column) => lefts.place(*column)?,
                Place::Right(column) => rights.place(*column)?,
                Place::Mark => continue,
            };
        }
        for column in join.filter().iter().flat_map(|filter| filter.column_indices()) {
            match column.side {
                JoinSide::Left => lefts.place(column.index)?,
                JoinSide::Right => rights.place(column.index)?,
                JoinSide::None => return None,
            };
        }
        let filter = match join.filter() {
            Some(filter) => {
                let made = condition(filter, &mut lefts, &mut rights)?;
                // A limit hides what fails in later pairs.
                if made.can_fail && join.fetch().is_some() {
                    return None;
                }
                Some(made.expr)
            }
            None => None,
        };
        let kind = kind(*join.join_type());
        // A kind that returns one side has no columns of the other.
        let before = match kind {
            JoinKind::RightSemi | JoinKind::RightAnti | JoinKind::RightMark => 0,
            _ => lefts.used().len(),
        };
        let marked = if matches!(kind, JoinKind::LeftMark) { lefts.used() } else { rights.used() }.len();
        let outputs = places.iter().map(|place| match place {
            Place::Left(column) => lefts.place(*column),
            Place::Right(column) => rights.place(*column).map(|column| before + column),
            Place::Mark => Some(marked),
        });
        let outputs = outputs.collect::<Option<_>>()?;
        let (ours, theirs): (Vec<_>, Vec<_>) = join.on().iter().cloned().unzip();
        let nulls_equal = join.null_equality() == NullEquality::NullEqualsNull;
        Some(Join {
            left: Side::of(lefts, &ours)?,
            right: Side::of(rights, &theirs)?,
            options: JoinOptions {
                kind,
                nulls_equal,
                null_aware: join.null_aware,
                filter,
                evaluation: options(),
            },
            outputs,
            ends_without_rows: join.join_type().empty_build_side_produces_empty_result(),
            ends_without_keys: join.join_type().empty_map_produces_empty_result(),
            may_be_spilled: ExecutionPlan::properties(join).output_ordering().is_none(),
            narrowed: Narrowed::of(join),
            shares_left: *join.partition_mode() == PartitionMode::CollectLeft,
        })
    }
}

/// Whether a key or the condition of a join has a subquery.
pub(crate) fn has_subqueries(join: &HashJoinExec) -> bool {
    let keys = join.on().iter().flat_map(|(left, right)| [left, right]);
    keys.chain(join.filter().map(JoinFilter::expression)).any(has_subquery)
}

impl Side {
    /// The side whose columns are moved, with its keys.
    fn of(mut inputs: Inputs, keys: &[Arc<dyn PhysicalExpr>]) -> Option<Side> {
        let moved = inputs.schema();
        Some(Side { keys: columns_of(keys, &mut inputs)?, moved })
    }
}

/// The columns of a join's whole result, in DataFusion's order.
fn places(of: JoinType, left: usize, right: usize) -> Vec<Place> {
    let (lefts, rights) = ((0..left).map(Place::Left), (0..right).map(Place::Right));
    match of {
        JoinType::LeftSemi | JoinType::LeftAnti => lefts.collect(),
        JoinType::RightSemi | JoinType::RightAnti => rights.collect(),
        JoinType::LeftMark => lefts.chain([Place::Mark]).collect(),
        JoinType::RightMark => rights.chain([Place::Mark]).collect(),
        JoinType::Inner | JoinType::Left | JoinType::Right | JoinType::Full => lefts.chain(rights).collect(),
    }
}

fn kind(of: JoinType) -> JoinKind {
    match of {
        JoinType::Inner => JoinKind::Inner,
        JoinType::Left => JoinKind::Left,
        JoinType::Right => JoinKind::Right,
        JoinType::Full => JoinKind::Full,
        JoinType::LeftSemi => JoinKind::LeftSemi,
        JoinType::RightSemi => JoinKind::RightSemi,
        JoinType::LeftAnti => JoinKind::LeftAnti,
        JoinType::RightAnti => JoinKind::RightAnti,
        JoinType::LeftMark => JoinKind::LeftMark,
        JoinType::RightMark => JoinKind::RightMark,
    }
}

/// The condition over the moved columns of both sides, all of which are known.
fn condition(filter: &JoinFilter, left: &mut Inputs, right: &mut Inputs) -> Option<Made> {
    let before = left.used().len();
    let mut place = |column: &Column| {
        let of = filter.column_indices().get(column.index())?;
        match of.side {
            JoinSide::Left => left.place(of.index),
            _ => right.place(of.index).map(|column| before + column),
        }
    };
    let made = filter.expression().clone().transform_up(|expr| {
        let Some(column) = expr.downcast_ref::<Column>() else { return Ok(Transformed::no(expr)) };
        match place(column) {
            Some(at) => Ok(Transformed::yes(Arc::new(Column::new(column.name(), at)))),
            None => internal_err!("a condition's column {column} is on no side"),
        }
    });
    let fields = [&*left, &*right].into_iter().flat_map(Inputs::their_fields).collect::<Vec<_>>();
    let mut both = Inputs::all_of(&Arc::new(TheirSchema::new(fields)));
    let made = translate(&made.ok()?.data, &mut both)?;
    has_type(&made.expr, &DataType::Boolean, &both).then_some(made)
}

#[cfg(test)]
mod tests {
    use datafusion::arrow::datatypes::Field;
    use datafusion::logical_expr::physical_planning_context::{ScalarSubqueryResults, SubqueryIndex};
    use datafusion::physical_expr::scalar_subquery::ScalarSubqueryExpr;
    use datafusion::physical_plan::empty::EmptyExec;

    use super::*;
    use crate::blame::of_join;
    use crate::reason::Reason;

    /// DataFusion's planner puts a key that is computed into a projection. Others may not.
    #[test]
    fn keys_with_subqueries_are_refused() {
        let schema = Arc::new(TheirSchema::new(vec![Field::new("x", DataType::Int64, true)]));
        let side = || Arc::new(EmptyExec::new(schema.clone())) as Arc<dyn ExecutionPlan>;
        let column = || Arc::new(Column::new("x", 0)) as Arc<dyn PhysicalExpr>;
        let results = ScalarSubqueryResults::new(1);
        let subquery = ScalarSubqueryExpr::new(DataType::Int64, true, SubqueryIndex::new(0), results);
        let subquery = Arc::new(subquery) as Arc<dyn PhysicalExpr>;
        let join = |key| {
            let (mode, nulls) = (PartitionMode::CollectLeft, NullEquality::NullEqualsNothing);
            let (on, kind) = (vec![(column(), key)], JoinType::Inner);
            HashJoinExec::try_new(side(), side(), on, None, &kind, None, mode, nulls, false).unwrap()
        };
        assert!(Join::translate(&join(column())).is_some());
        assert!(Join::translate(&join(subquery.clone())).is_none());
        assert_eq!(of_join(&join(subquery)), Some(Reason::Subquery));
    }
}
