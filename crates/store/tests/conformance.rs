//! The conformance suite on both databases: every case is a test of its own on each.

use chancery_testkit::conformance::{self, Home};

macro_rules! on_both {
    ($($part:ident: $($case:ident)*;)*) => {
        mod sqlite { $(mod $part { $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                crate::conformance::$part::$case(&crate::Home::sqlite().await).await;
            }
        )* })* }

        mod postgres { $(mod $part { $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $case() {
                crate::conformance::$part::$case(&crate::Home::postgres().await).await;
            }
        )* })* }
    };
}

on_both! {
    audit:
        an_empty_chain_holds
        an_entry_says_what_it_was_told
        an_append_brings_its_entry
        an_append_that_is_refused_writes_no_entry
        tokens_are_made_and_revoked_in_the_audit
        the_chain_holds_whoever_writes_at_once
        entries_are_found_by_filter_and_page
        odd_and_large_entries_are_kept
        a_crash_loses_and_doubles_no_entry;
    family:
        a_child_is_made_with_its_parents_wait_or_not_at_all
        a_child_ends_with_its_parents_wait_for_it
        two_children_that_end_at_the_same_instant_wake_their_parent_once
        a_run_that_ends_badly_leaves_its_children_to_be_cancelled
        a_deadline_that_is_looked_at_too_soon_is_looked_at_again
        what_is_waited_for_in_the_end_is_found_through_runs_that_wait_for_others;
    log:
        an_append_is_held_to_its_place_in_the_log
        a_change_that_was_made_is_recognised_when_it_is_appended_again
        there_is_no_appending_to_no_run
        a_lost_lease_writes_nothing
        a_request_with_a_key_makes_one_run
        the_same_request_at_once_makes_one_run
        odd_and_large_texts_survive
        absurd_token_counts_break_nothing
        events_are_read_from_a_place_and_up_to_a_number
        a_hundred_speakers_at_once_are_all_heard
        whoever_listens_hears_of_a_change;
    mail:
        the_same_call_at_once_is_one_mail
        a_rejection_is_told_with_the_entry_that_the_audit_has_of_it
        mail_is_delivered_in_the_order_that_it_was_sent
        what_was_tried_is_counted_under_the_contracts_of_its_time
        mail_is_handed_to_one_run_though_two_servers_look
        a_run_that_was_to_be_made_for_mail_is_made_once
        what_nobody_answers_goes_up_to_the_board
        what_is_raised_again_while_it_waits_counts_once
        a_contract_that_failed_is_told_within_what_was_delegated
        an_attachment_is_beneath_the_workspace_and_no_secret
        an_answer_ends_the_wait_for_it
        a_board_that_is_to_be_told_is_told_through_the_outbox;
    mark:
        a_mark_of_mail_is_another_for_whose_it_is
        a_mark_of_a_contract_follows_what_came_of_it
        a_mark_of_rules_says_which_hold
        a_mark_of_the_audit_is_of_what_concerns_somebody
        a_mark_of_visits_tokens_and_deliveries
        a_mark_of_memories_is_of_those_within_reach;
    memory:
        a_memory_is_kept_and_found_with_all_that_was_said_of_it
        the_same_text_is_kept_once_in_a_partition
        what_says_nearly_the_same_is_linked
        a_correction_takes_the_place_of_what_it_corrects
        what_is_forgotten_is_gone
        another_tenant_is_answered_as_if_there_were_nothing
        a_call_that_is_carried_out_again_is_the_same_memory
        what_was_recalled_is_not_stored_again_as_new
        memories_are_listed_newest_first_and_page_by_page
        what_is_past_its_time_is_forgotten
        who_write_at_once_write_all_and_count_right;
    recall:
        a_personal_search_has_preferences_first
        a_groups_memory_does_not_pollute_a_persons
        a_groups_search_has_its_blackboard_first
        a_preference_is_found_by_its_mark
        what_was_said_beside_a_match_is_found_with_it
        neighbours_count_however_many_match
        a_vector_is_kept_for_a_memory_that_is_there_and_found_in_its_space
        questions_in_two_languages_find_their_answers;
    deposit:
        a_group_run_that_completes_is_due_and_no_other
        a_deposit_is_made_once_and_says_where_it_came_from
        an_identical_text_is_linked_and_not_repeated
        a_deposit_that_two_take_is_made_once
        a_deposit_outlives_whoever_took_it;
    org:
        a_version_is_kept_with_its_files
        the_same_organisation_makes_no_new_version
        a_version_follows_the_one_that_it_was_made_from
        versions_that_come_at_once_have_numbers_of_their_own;
    outbox:
        a_notice_is_written_with_its_event
        an_append_that_is_refused_tells_nothing
        a_notice_is_taken_by_one_until_it_is_settled
        a_notice_that_was_not_settled_comes_back;
    projection:
        a_run_with_a_deadline_that_is_met
        a_run_with_a_deadline_that_passes
        a_run_cancelled_while_it_waits
        a_run_that_is_asked_about_twice
        a_run_that_fails_and_is_resumed
        a_run_that_ends_before_it_starts
        a_whole_run_in_one_append
        a_deadline_knows_its_key_whatever_it_is_of
        the_next_deadline_is_known
        the_posture_of_a_change_is_that_of_its_row;
    queue:
        runs_are_claimed_oldest_first_as_many_as_asked_for
        a_claim_brings_the_whole_log
        no_run_is_claimed_twice
        what_waits_or_has_ended_is_not_in_the_queue
        failures_are_counted_while_the_log_stands_still
        a_failure_pauses_and_a_handover_does_not
        a_lost_lease_is_not_given_back
        a_run_is_disowned_by_its_owner
        the_runs_of_the_dead_are_rescued_and_counted
        a_lost_worker_is_held_against_a_run_that_it_had_alone
        what_is_begun_again_stands_where_it_stood
        one_who_resigns_leaves_nothing_behind
        runs_are_cancelled_while_they_are_claimed;
    rate:
        the_last_turn_is_taken_by_one
        a_share_comes_back_with_time
        the_tokens_of_a_tree_are_those_of_all_its_runs;
    read:
        a_row_says_all_that_the_run_was_made_with
        runs_are_listed_newest_first_by_filter_and_page
        a_tree_is_a_run_and_all_that_it_led_to
        a_session_is_what_was_said_before
        a_run_is_found_by_how_its_id_begins
        tokens_are_kept_found_and_revoked
        how_far_runs_have_come_is_another_with_every_event;
    visit:
        a_visit_ends_with_its_time_its_token_or_by_hand
        a_link_lets_one_in
        what_waits_is_counted_for_whom_it_concerns
        what_was_answered_before_is_counted
        visits_are_listed_and_ended_by_whose_they_are;
    vouched:
        a_name_is_given_once_and_for_good
        whoever_was_sent_away_comes_back_once
        a_visit_says_whether_somebody_vouches_for_it;
}

/// The same questions are answered alike, whichever database answers them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_ten_best_memories_are_the_same_on_both_databases() {
    let here = conformance::recall::top_ten(&Home::sqlite().await).await;
    let there = conformance::recall::top_ten(&Home::postgres().await).await;
    assert!(here.iter().any(|it| it.len() == 10), "{here:?}");
    assert_eq!(here, there);
}
