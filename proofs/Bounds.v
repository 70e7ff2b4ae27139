(** Which tools may be named at all, and how two such limits meet.
    Mirrors crates/domain/src/policy/bounds.rs. The code keeps its lists sorted and without
    repetition; here they are as they come, and the tests compare them sorted. *)

From Coq Require Import List Bool Ascii String.
Import ListNotations.

Definition star : ascii := "*"%char.

(** [*] stands for any run of characters. *)
Fixpoint glob (pattern name : string) : bool :=
  match pattern with
  | EmptyString => match name with EmptyString => true | String _ _ => false end
  | String c rest =>
      if Ascii.eqb c star then
        (fix skip (n : string) : bool :=
           glob rest n || match n with EmptyString => false | String _ n' => skip n' end) name
      else
        match name with
        | EmptyString => false
        | String d n => Ascii.eqb c d && glob rest n
        end
  end.

Fixpoint is_glob (entry : string) : bool :=
  match entry with
  | EmptyString => false
  | String c rest => Ascii.eqb c star || is_glob rest
  end.

(** No list is no limit; an empty list allows nothing. *)
Record bounds := { allowed : option (list string); denied : list string }.

Definition unlimited : bounds := {| allowed := None; denied := [] |}.
Definition nothing : bounds := {| allowed := Some []; denied := [] |}.

Definition any (l : list string) (tool : string) : bool :=
  existsb (fun entry => glob entry tool) l.

Definition permits (b : bounds) (tool : string) : bool :=
  negb (any (denied b) tool) &&
  match allowed b with None => true | Some l => any l tool end.

Definition limited (b : bounds) : bool :=
  match allowed b with Some _ => true | None => existsb is_glob (denied b) end.

Definition exact (l : list string) : list string := filter (fun e => negb (is_glob e)) l.

(** What both sides permit of the tools that are known, by name. *)
Definition meet (known : list string) (a b : bounds) : bounds :=
  {| denied := filter (fun t => any (denied a) t || any (denied b) t) known
               ++ exact (denied a) ++ exact (denied b);
     allowed := if limited a || limited b
                then Some (filter (fun t => permits a t && permits b t) known)
                else None |}.

(** The same by name; what was named in so many words stays, known or not. *)
Definition named (known : list string) (b : bounds) : bounds :=
  let met := meet known b unlimited in
  {| denied := denied met;
     allowed := match allowed met, allowed b with
                | Some names, Some own =>
                    Some (names ++ filter (fun e => permits b e) (exact own))
                | other, _ => other
                end |}.

(** The names of tools have no star: the code refuses any other. *)
Definition plain (known : list string) : Prop := Forall (fun t => is_glob t = false) known.

Lemma glob_of_a_name : forall e n, is_glob e = false -> glob e n = String.eqb e n.
Proof.
  induction e as [|c e IH]; intros n H; destruct n as [|d n]; simpl in *; try reflexivity;
    apply orb_false_iff in H; destruct H as [H1 H2]; rewrite H1; try reflexivity.
  rewrite IH by assumption; destruct (Ascii.eqb c d); reflexivity.
Qed.

Lemma any_of_names : forall l t, Forall (fun e => is_glob e = false) l ->
  (any l t = true <-> In t l).
Proof.
  intros l t P; unfold any; rewrite existsb_exists; split.
  - intros (e & I & G); rewrite Forall_forall in P.
    rewrite glob_of_a_name in G by auto; apply String.eqb_eq in G; subst; assumption.
  - intros I; exists t; split; [assumption|]; rewrite Forall_forall in P.
    rewrite glob_of_a_name by auto; apply String.eqb_refl.
Qed.

Lemma exact_is_plain : forall l, Forall (fun e => is_glob e = false) (exact l).
Proof.
  intros l; apply Forall_forall; intros e I; apply filter_In in I.
  destruct I as [_ I]; apply negb_true_iff in I; assumption.
Qed.

Lemma exact_of_no_globs : forall l, existsb is_glob l = false -> exact l = l.
Proof.
  induction l as [|e l IH]; simpl; intros H; [reflexivity|].
  apply orb_false_iff in H; destruct H as [H1 H2]; rewrite H1; simpl; rewrite IH by assumption;
    reflexivity.
Qed.

Lemma filtered_is_plain : forall f known, plain known -> plain (filter f known).
Proof.
  unfold plain; intros f known P; apply Forall_forall; intros e I; apply filter_In in I.
  rewrite Forall_forall in P; apply P; tauto.
Qed.

Lemma any_app : forall l m t, any (l ++ m) t = any l t || any m t.
Proof. intros; unfold any; apply existsb_app. Qed.

Lemma meet_denies : forall known a b t, plain known ->
  (any (denied (meet known a b)) t = true <->
   (In t known /\ (any (denied a) t || any (denied b) t) = true) \/
   In t (exact (denied a)) \/ In t (exact (denied b))).
Proof.
  intros known a b t P; unfold meet; simpl; rewrite !any_app, !orb_true_iff.
  rewrite (any_of_names _ _ (filtered_is_plain _ _ P)), filter_In.
  rewrite !(any_of_names _ _ (exact_is_plain _)); rewrite orb_true_iff; tauto.
Qed.

(** What meets is never wider than either side, also for tools that come later. *)
Theorem meet_only_shrinks : forall known a b t, plain known ->
  permits (meet known a b) t = true -> permits a t = true /\ permits b t = true.
Proof.
  intros known a b t P H; unfold permits at 1 in H; apply andb_true_iff in H; destruct H as [D A].
  apply negb_true_iff in D.
  destruct (limited a || limited b) eqn:L; unfold meet in A; simpl in A; rewrite L in A.
  - apply (any_of_names _ _ (filtered_is_plain _ _ P)) in A; apply filter_In in A.
    destruct A as [_ A]; apply andb_true_iff in A; assumption.
  - apply orb_false_iff in L; unfold limited in L; destruct L as [La Lb].
    destruct (allowed a) eqn:Aa; [discriminate|]; destruct (allowed b) eqn:Ab; [discriminate|].
    assert (N : forall x, existsb is_glob x = false -> In t (exact x) <-> any x t = true).
    { intros x G; rewrite (exact_of_no_globs x G); symmetry; apply any_of_names.
      rewrite <- (exact_of_no_globs x G); apply exact_is_plain. }
    split; unfold permits; rewrite ?Aa, ?Ab, andb_true_r; apply negb_true_iff.
    + destruct (any (denied a) t) eqn:E; [|reflexivity].
      rewrite <- D; symmetry; apply (meet_denies known a b t P); right; left; apply N; assumption.
    + destruct (any (denied b) t) eqn:E; [|reflexivity].
      rewrite <- D; symmetry; apply (meet_denies known a b t P); right; right; apply N; assumption.
Qed.

(** Of the tools that are known nothing is lost that both sides permit. *)
Theorem meet_is_both : forall known a b t, plain known -> In t known ->
  permits (meet known a b) t = permits a t && permits b t.
Proof.
  intros known a b t P I; destruct (permits (meet known a b) t) eqn:M.
  - destruct (meet_only_shrinks known a b t P M) as [-> ->]; reflexivity.
  - symmetry; destruct (permits a t) eqn:Pa; [|reflexivity]; destruct (permits b t) eqn:Pb;
      [|reflexivity]; simpl; rewrite <- M; clear M; symmetry.
    unfold permits at 1; apply andb_true_iff; split.
    + apply negb_true_iff; destruct (any (denied (meet known a b)) t) eqn:D; [|reflexivity].
      assert (E : any (denied a) t = false /\ any (denied b) t = false).
      { unfold permits in Pa, Pb; apply andb_true_iff in Pa, Pb; rewrite !negb_true_iff in *;
          tauto. }
      destruct E as [Ea Eb]; apply (meet_denies known a b t P) in D; rewrite Ea, Eb in D.
      assert (N : forall x, In t (exact x) -> any x t = true).
      { intros x X; pose proof (exact_is_plain x) as G; rewrite Forall_forall in G.
        unfold any; apply existsb_exists; exists t; split.
        - apply filter_In in X; tauto.
        - rewrite glob_of_a_name by auto; apply String.eqb_refl. }
      destruct D as [[_ D]|[D|D]]; [discriminate|apply N in D; congruence|apply N in D; congruence].
    + unfold meet; simpl; destruct (limited a || limited b); [|reflexivity].
      apply (any_of_names _ _ (filtered_is_plain _ _ P)); apply filter_In; split; [assumption|].
      rewrite Pa, Pb; reflexivity.
Qed.

(** What is kept by name is never wider than what was said. *)
Theorem named_only_shrinks : forall known b t, plain known ->
  permits (named known b) t = true -> permits b t = true.
Proof.
  intros known b t P H; unfold permits at 1 in H; apply andb_true_iff in H; destruct H as [D A].
  assert (M : forall l, allowed (meet known b unlimited) = Some l -> any l t = true ->
              permits b t = true).
  { intros l E X; apply (meet_only_shrinks known b unlimited t P).
    unfold permits; rewrite E, X, andb_true_r; exact D. }
  unfold named in A; cbn [allowed] in A.
  destruct (allowed (meet known b unlimited)) as [l|] eqn:E.
  - destruct (allowed b) as [own|] eqn:O; [|exact (M l eq_refl A)].
    rewrite any_app in A; apply orb_true_iff in A; destruct A as [A|A]; [exact (M l eq_refl A)|].
    apply (any_of_names _ _ (filtered_is_plain _ _ (exact_is_plain own))) in A.
    apply filter_In in A; tauto.
  - apply (meet_only_shrinks known b unlimited t P); unfold permits; rewrite E, andb_true_r.
    exact D.
Qed.

(** The order of two sides does not matter, nor does meeting twice. *)
Theorem meet_in_any_order : forall known a b t, plain known -> In t known ->
  permits (meet known a b) t = permits (meet known b a) t.
Proof. intros; rewrite !meet_is_both by assumption; apply andb_comm. Qed.

Theorem meet_groups_in_any_way : forall known a b c t, plain known -> In t known ->
  permits (meet known a (meet known b c)) t = permits (meet known (meet known a b) c) t.
Proof. intros; rewrite !meet_is_both by assumption; apply andb_assoc. Qed.

Theorem meet_twice_is_meet_once : forall known a t, plain known -> In t known ->
  permits (meet known a a) t = permits a t.
Proof. intros; rewrite meet_is_both by assumption; apply andb_diag. Qed.

(** A denial more, or an allowed entry less, never widens. *)
Theorem a_denial_more_never_widens : forall b e t,
  permits {| allowed := allowed b; denied := e :: denied b |} t = true -> permits b t = true.
Proof.
  intros b e t; unfold permits; simpl; rewrite negb_orb, !andb_true_iff; tauto.
Qed.

Theorem an_entry_less_never_widens : forall l l' d t, incl l' l ->
  permits {| allowed := Some l'; denied := d |} t = true ->
  permits {| allowed := Some l; denied := d |} t = true.
Proof.
  intros l l' d t I; unfold permits; simpl; rewrite !andb_true_iff; intros [D A]; split;
    [assumption|]; unfold any in *; apply existsb_exists in A; destruct A as (e & E & G).
  apply existsb_exists; exists e; auto.
Qed.

Theorem a_list_where_none_was_never_widens : forall l d t,
  permits {| allowed := Some l; denied := d |} t = true ->
  permits {| allowed := None; denied := d |} t = true.
Proof. intros l d t; unfold permits; simpl; rewrite !andb_true_iff; tauto. Qed.

Theorem an_empty_list_allows_nothing : forall d t,
  permits {| allowed := Some []; denied := d |} t = false.
Proof. intros; unfold permits; simpl; apply andb_false_r. Qed.
