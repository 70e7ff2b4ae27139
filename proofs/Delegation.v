(** What a run passes on to a child, down a chain of any length.
    Mirrors [Policy::delegate], [escalation::too_deep] and the lookup of standing rules. *)

From Coq Require Import List Bool Arith Lia String.
From Chancery Require Import Bounds.
Import ListNotations.

Definition within (b : option bounds) (tool : string) : bool :=
  match b with None => true | Some b => permits b tool end.

Definition sides (l : list (option bounds)) : list bounds :=
  flat_map (fun b => match b with None => [] | Some b => [b] end) l.

(** An agent that is gone has no role, and passes nothing on. *)
Definition delegable (role : option bounds) : bounds :=
  match role with None => nothing | Some b => b end.

Definition delegate (known : list string) (role parent user asked : option bounds) : bounds :=
  fold_left (meet known) (sides [parent; user; asked]) (meet known (delegable role) unlimited).

(** One escalation: the tools that there were, the role that delegated, the person, the call. *)
Record link := {
  link_known : list string;
  link_role : option bounds;
  link_user : option bounds;
  link_asked : option bounds }.

Definition pass (given : option bounds) (l : link) : option bounds :=
  Some (delegate (link_known l) (link_role l) given (link_user l) (link_asked l)).

Definition chain (given : option bounds) (links : list link) : option bounds :=
  fold_left pass links given.

Definition link_permits (l : link) (tool : string) : Prop :=
  permits (delegable (link_role l)) tool = true /\
  within (link_user l) tool = true /\ within (link_asked l) tool = true.

Definition link_plain (l : link) : Prop := plain (link_known l).

Lemma folded_meets_shrink : forall known l b t, plain known ->
  permits (fold_left (meet known) l b) t = true ->
  permits b t = true /\ Forall (fun s => permits s t = true) l.
Proof.
  intros known l; induction l as [|s l IH]; intros b t P H; simpl in *; [auto|].
  apply IH in H; [|assumption]; destruct H as [H F].
  apply meet_only_shrinks in H; [|assumption]; destruct H; auto.
Qed.

Lemma folded_meets_are_all : forall known l b t, plain known -> In t known ->
  permits (fold_left (meet known) l b) t = permits b t && forallb (fun s => permits s t) l.
Proof.
  intros known l; induction l as [|s l IH]; intros b t P I; simpl; [rewrite andb_true_r; auto|].
  rewrite IH, meet_is_both by assumption; symmetry; apply andb_assoc.
Qed.

(** A child has no more than any of the four sides. *)
Theorem delegation_only_shrinks : forall l given t, link_plain l ->
  within (pass given l) t = true -> within given t = true /\ link_permits l t.
Proof.
  unfold pass, delegate, link_permits; intros l given t P H; simpl in H.
  apply folded_meets_shrink in H; [|assumption]; destruct H as [H F].
  apply meet_only_shrinks in H; [|assumption]; destruct H as [H _].
  rewrite Forall_forall in F.
  destruct given as [g|], (link_user l) as [u|], (link_asked l) as [a|]; simpl in *;
    repeat split; try assumption; try reflexivity; apply F; simpl; tauto.
Qed.

(** Of the tools that are known it has exactly what all four permit. *)
Theorem delegation_is_all_four : forall l given t, link_plain l -> In t (link_known l) ->
  within (pass given l) t =
  within given t && permits (delegable (link_role l)) t && within (link_user l) t
  && within (link_asked l) t.
Proof.
  unfold pass, delegate; intros l given t P I; simpl.
  rewrite folded_meets_are_all, meet_is_both by assumption.
  replace (permits unlimited t) with true by reflexivity.
  destruct given as [g|], (link_user l) as [u|], (link_asked l) as [a|]; simpl;
    rewrite ?andb_true_r; destruct (permits (delegable (link_role l)) t); simpl;
    rewrite ?andb_false_r, ?andb_false_l, ?andb_true_r; simpl; rewrite ?andb_assoc; reflexivity.
Qed.

(** A chain of any length grants no more than what it began with and each of its links,
    whatever tools come and go meanwhile. *)
Theorem chain_grants_no_more_than_each_link : forall links given t, Forall link_plain links ->
  within (chain given links) t = true ->
  within given t = true /\ Forall (fun l => link_permits l t) links.
Proof.
  intros links; induction links as [|l links IH]; intros given t P H; simpl in *; [auto|].
  inversion P; subst; apply IH in H; [|assumption]; destruct H as [H F].
  apply delegation_only_shrinks in H; [|assumption]; destruct H; auto.
Qed.

(** A longer chain grants no more than its beginning. *)
Theorem a_longer_chain_grants_no_more : forall first more given t, Forall link_plain more ->
  within (chain given (first ++ more)) t = true -> within (chain given first) t = true.
Proof.
  unfold chain; intros first more given t P; rewrite fold_left_app; intros H.
  apply (chain_grants_no_more_than_each_link more _ t P) in H; tauto.
Qed.

(** What was once lost is not regained further down. *)
Corollary what_is_lost_stays_lost : forall first more given t, Forall link_plain more ->
  within (chain given first) t = false -> within (chain given (first ++ more)) t = false.
Proof.
  intros first more given t P L; destruct (within (chain given (first ++ more)) t) eqn:E;
    [|reflexivity].
  apply a_longer_chain_grants_no_more in E; [congruence|assumption].
Qed.

(** An agent that is gone passes nothing on. *)
Corollary nobody_passes_nothing_on : forall first more given l t,
  Forall link_plain (l :: more) -> link_role l = None ->
  within (chain given (first ++ l :: more)) t = false.
Proof.
  intros first more given l t P N; destruct (within _ t) eqn:E; [|reflexivity].
  unfold chain in E; rewrite fold_left_app in E.
  apply (chain_grants_no_more_than_each_link (l :: more) _ t P) in E; destruct E as [_ F].
  inversion F as [|x y H]; subst; unfold link_permits in H; rewrite N in H.
  destruct H as [H _]; unfold delegable, nothing in H.
  rewrite an_empty_list_allows_nothing in H; discriminate.
Qed.

(** Depth: whoever is too deep stays so, and so do all beneath; a lower limit lets no more. *)
Definition too_deep (ancestors depth_max : nat) : bool := depth_max <=? ancestors.

Theorem deeper_is_no_freer : forall n m max, n <= m -> too_deep n max = true -> too_deep m max = true.
Proof. unfold too_deep; intros n m max L; rewrite !Nat.leb_le; lia. Qed.

Theorem a_lower_limit_is_no_freer :
  forall n max max', max' <= max -> too_deep n max = true -> too_deep n max' = true.
Proof. unfold too_deep; intros n max max' L; rewrite !Nat.leb_le; lia. Qed.

(** Standing rules: a decision that is remembered, until it expires or is taken back. *)
Inductive scope := OfRun | OfAgent | Always.

Record standing_rule := {
  rule_user : nat; rule_agent : nat; rule_run : nat; rule_scope : scope;
  rule_tool : nat; rule_signature : nat; expires_at : nat; revoked : bool }.

Record wanted := {
  want_user : nat; want_agent : nat; want_run : nat;
  want_tool : nat; want_signature : nat; now : nat }.

Definition covers (r : standing_rule) (w : wanted) : bool :=
  (rule_user r =? want_user w) && (rule_tool r =? want_tool w)
  && (rule_signature r =? want_signature w) && negb (revoked r) && (now w <? expires_at r)
  && match rule_scope r with
     | Always => true
     | OfAgent => rule_agent r =? want_agent w
     | OfRun => rule_run r =? want_run w
     end.

Definition revoke (r : standing_rule) : standing_rule :=
  {| rule_user := rule_user r; rule_agent := rule_agent r; rule_run := rule_run r;
     rule_scope := rule_scope r; rule_tool := rule_tool r; rule_signature := rule_signature r;
     expires_at := expires_at r; revoked := true |}.

Definition later (w : wanted) (at_ : nat) : wanted :=
  {| want_user := want_user w; want_agent := want_agent w; want_run := want_run w;
     want_tool := want_tool w; want_signature := want_signature w; now := at_ |}.

Theorem time_only_takes_away : forall r w t, now w <= t ->
  covers r (later w t) = true -> covers r w = true.
Proof.
  unfold covers, later; simpl; intros r w t L; rewrite !andb_true_iff, !Nat.ltb_lt.
  intros [[[[[A B] C] D] E] F]; repeat split; try assumption; lia.
Qed.

Theorem what_is_revoked_covers_nothing : forall r w, covers (revoke r) w = false.
Proof. unfold covers; simpl; intros; rewrite !andb_false_r; reflexivity. Qed.

Theorem a_rule_covers_only_its_user_tool_and_signature : forall r w, covers r w = true ->
  rule_user r = want_user w /\ rule_tool r = want_tool w /\ rule_signature r = want_signature w.
Proof.
  unfold covers; intros r w; rewrite !andb_true_iff, !Nat.eqb_eq; tauto.
Qed.
