//! The programs in the pages of `docs/`, one file for each page. A page shows the lines between `ANCHOR` and
//! `ANCHOR_END`. The programs run one after another, because some count the work of the one emulated device.

mod arrays;
mod foreign;
mod operations;
mod operator;
mod streams;

fn main() -> bowstring::Result<()> {
    arrays::in_host_memory()?;
    arrays::on_a_device()?;
    arrays::nothing_moves_by_itself()?;
    arrays::bounded_memory()?;
    streams::one_wait_for_a_filter_none_for_a_cast()?;
    streams::two_streams_meet_by_an_event()?;
    streams::a_pending_result_can_be_awaited()?;
    streams::what_only_the_data_shows_comes_late()?;
    operations::one_mask_for_many_arrays()?;
    operations::rows_in_order()?;
    operations::a_row_for_each_group()?;
    operations::rows_beside_others()?;
    operations::a_predicate_never_becomes_an_array()?;
    operations::bound_once_for_many_batches()?;
    operations::the_sixth_query()?;
    operations::what_each_operation_waits_for()?;
    foreign::a_producer_and_a_consumer()?;
    foreign::strangers_are_checked()?;
    operator::the_operator_gives_what_the_query_asks()?;
    operator::an_aggregate_over_batches()?;
    println!("every program of the pages did what it says");
    Ok(())
}
