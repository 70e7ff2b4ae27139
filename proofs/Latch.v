(** The calls of one model output, decided and run as one unit.
    Mirrors crates/domain/src/batch.rs. There the two states of a batch are two types; here an
    open batch answers [WrongState] to what that type has no method for. Arguments and
    definitions are numbers that stand for their digests. *)

From Coq Require Import List Bool Arith Lia.
From Chancery Require Import Ruling.
Import ListNotations.

Inductive actor := Person | Service | Agent | System.
Inductive decision := Granted | Denied | Expired | Supplied.

(** A question: its own id, the digest of the arguments that it shows, and of the tool. *)
Record request := { id : nat; shown : nat; definition : option nat; recovers : bool }.

Inductive clearance := Ruled | GrantedBy (human : bool) | ByRule (rule : nat).
Inductive refusal := Policy | ByPerson | TooLate | UnknownOutcome.

Inductive standing :=
  | Cleared (c : clearance)
  | Asked (human escalates : bool) (r : request)
  | Refused (r : refusal)
  | Started (c : clearance)
  | Away (child : nat)
  | Ended.

Record slot := {
  call : nat; args : nat; stands : standing;
  said_no : bool; begun : bool; granted_as : option nat }.

Definition gate := list slot.

Inductive answer := NoAnswer | Question (r : request) | Rule (rule : nat).
Record proposal := { of_call : nat; with_arguments : nat; ruled : ruling; answered : answer }.

Inductive error :=
  | Empty | Twice | NoSuchCall | NotAsked | NotNext | HumanRequired | NotADecider
  | NoSuchAnswer | NobodyAsked | Standing | WrongState.

Inductive result (A : Type) := Ok (a : A) | Err (e : error).
Arguments Ok {A}. Arguments Err {A}.

Record reply := {
  on_call : nat; permission : nat; decided : decision; by_ : actor;
  edited : option nat; remember : bool }.

Inductive event :=
  | Decide (r : reply)
  | Escalate (c : nat)
  | Start (c : nat)
  | End_ (c : nat)
  | Refuse (c : nat)
  | Retry (c : nat)
  | Reopen (c : nat) (r : ruling) (q : request)
  | Send (c child : nat)
  | Back (c child : nat).

Definition human (r : ruling) : bool := match r with RequireHuman => true | _ => false end.

Definition first_standing (p : proposal) : result standing :=
  match ruled p, answered p with
  | Allow, _ => Ok (Cleared Ruled)
  | Deny, _ => Ok (Refused Policy)
  | RequireApproval, Rule n => Ok (Cleared (ByRule n))
  | r, Question q => Ok (Asked (human r) true q)
  | _, _ => Err NobodyAsked
  end.

Fixpoint slots (seen : list nat) (ps : list proposal) : result gate :=
  match ps with
  | [] => Ok []
  | p :: ps =>
      if existsb (Nat.eqb (of_call p)) seen then Err Twice else
      match first_standing p with
      | Err e => Err e
      | Ok s =>
          match slots (of_call p :: seen) ps with
          | Err e => Err e
          | Ok g => Ok ({| call := of_call p; args := with_arguments p; stands := s;
                           said_no := false; begun := false; granted_as := None |} :: g)
          end
      end
  end.

Definition propose (ps : list proposal) : result gate :=
  match ps with [] => Err Empty | _ => slots [] ps end.

Definition is_asked (s : slot) : bool := match stands s with Asked _ _ _ => true | _ => false end.
Definition is_open (g : gate) : bool := existsb is_asked g.

Definition put (s : slot) (x : standing) : slot :=
  {| call := call s; args := args s; stands := x; said_no := said_no s;
     begun := begun s; granted_as := granted_as s |}.

Definition change (c : nat) (f : slot -> slot) (g : gate) : gate :=
  map (fun s => if call s =? c then f s else s) g.

Definition is_person (a : actor) : bool := match a with Person => true | _ => false end.
Definition edits (r : reply) : bool :=
  match edited r with Some _ => true | None => remember r end.

(** Whether an answer may be given by this one to a question that needs (or not) a person. *)
Definition refusal_of (needs_human recovering : bool) (r : reply) : option error :=
  match decided r, by_ r with
  | Expired, System => if edits r then Some NotADecider else None
  | _, Agent | _, System => Some NotADecider
  | d, _ =>
      if match d with Denied => negb (edits r) | _ => false end then None
      else if needs_human && negb (is_person (by_ r)) then Some HumanRequired
      else match d with
           | Granted =>
               if remember r && needs_human then Some HumanRequired
               else if recovering && edits r then Some NoSuchAnswer else None
           | Supplied => if recovering && negb (edits r) then None else Some NoSuchAnswer
           | _ => Some NoSuchAnswer
           end
  end.

Definition standing_after (r : reply) (q : request) : standing :=
  match decided r with
  | Granted => Cleared (GrantedBy (is_person (by_ r)))
  | Supplied => Ended
  | Denied => Refused (if recovers q then UnknownOutcome else ByPerson)
  | Expired => Refused (if recovers q then UnknownOutcome else TooLate)
  end.

Definition answer_slot (r : reply) (s : slot) : slot :=
  match stands s with
  | Asked _ _ q =>
      if id q =? permission r then
        {| call := call s;
           args := match edited r with Some a => a | None => args s end;
           stands := standing_after r q;
           said_no := said_no s || match decided r with Denied | Expired => true | _ => false end;
           begun := begun s;
           granted_as := definition q |}
      else s
  | _ => s
  end.

Definition find_call (c : nat) (g : gate) : option slot := find (fun s => call s =? c) g.

Definition decide (g : gate) (r : reply) : result gate :=
  match find_call (on_call r) g with
  | None => Err NoSuchCall
  | Some s =>
      match stands s with
      | Asked h _ q =>
          if negb (id q =? permission r) then Err NotAsked
          else match refusal_of h (recovers q) r with
               | Some e => Err e
               | None => Ok (change (on_call r) (answer_slot r) g)
               end
      | _ => Err NotAsked
      end
  end.

Definition escalate (g : gate) (c : nat) : result gate :=
  match find_call c g with
  | None => Err NoSuchCall
  | Some s =>
      match stands s with
      | Asked _ true _ =>
          Ok (change c (fun s => match stands s with
                                 | Asked h _ q => put s (Asked h false q)
                                 | _ => s end) g)
      | _ => Err Standing
      end
  end.

Definition over (s : slot) : bool := match stands s with Ended => true | _ => false end.
Definition in_the_way (s : slot) : bool :=
  match stands s with Ended | Away _ => false | _ => true end.

(** Only the first unfinished call may move. *)
Definition first_open (g : gate) (c : nat) (legal : standing -> bool) : option error :=
  match find in_the_way g with
  | None => Some NotNext
  | Some s => if negb (call s =? c) then Some NotNext
              else if legal (stands s) then None else Some Standing
  end.

Definition move (g : gate) (c : nat) (legal : standing -> bool) (f : slot -> slot) : result gate :=
  match first_open g c legal with Some e => Err e | None => Ok (change c f g) end.

Definition is_started (x : standing) : bool := match x with Started _ => true | _ => false end.

Definition start_slot (s : slot) : slot :=
  match stands s with
  | Cleared c => {| call := call s; args := args s; stands := Started c;
                    said_no := said_no s; begun := true; granted_as := granted_as s |}
  | _ => s
  end.

Definition start (g : gate) (c : nat) : result gate :=
  match find (fun s => match stands s with Ended | Started _ => false | _ => true end) g with
  | None => Err NotNext
  | Some s =>
      if negb (call s =? c) then Err NotNext
      else match stands s with
           | Cleared _ => Ok (change c start_slot g)
           | _ => Err Standing
           end
  end.

Definition back (g : gate) (c child : nat) : result gate :=
  match find_call c g with
  | None => Err NoSuchCall
  | Some s =>
      match stands s with
      | Away k => if k =? child then Ok (change c (fun s => put s Ended) g) else Err Standing
      | _ => Err Standing
      end
  end.

Definition step (g : gate) (e : event) : result gate :=
  match is_open g, e with
  | true, Decide r => decide g r
  | true, Escalate c => escalate g c
  | false, Start c => start g c
  | false, End_ c => move g c is_started (fun s => put s Ended)
  | false, Refuse c =>
      move g c (fun x => match x with Refused _ | Cleared _ => true | _ => false end)
           (fun s => put s Ended)
  | false, Retry c =>
      move g c is_started
           (fun s => match stands s with Started k => put s (Cleared k) | _ => s end)
  | false, Reopen c r q =>
      if negb (asks r) then Err NobodyAsked
      else move g c (fun x => match x with
                              | Started _ => true
                              | Cleared _ => negb (recovers q)
                              | _ => false end)
                (fun s => put s (Asked (human r) true q))
  | false, Send c child => move g c is_started (fun s => put s (Away child))
  | false, Back c child => back g c child
  | _, _ => Err WrongState
  end.

(** What to do about the first call that has not ended. *)
Inductive turn := Execute (c : nat) (k : clearance) | Turn_down (c : nat) (r : refusal) | Unknown (c : nat).

Definition next (g : gate) : option turn :=
  match find (fun s => negb (over s)) g with
  | None => None
  | Some s =>
      match stands s with
      | Cleared k => Some (Execute (call s) k)
      | Refused r => Some (Turn_down (call s) r)
      | Started _ | Asked _ _ _ | Away _ => Some (Unknown (call s))
      | Ended => None
      end
  end.

(** ** What holds along every history of a batch *)

(** A question shows the arguments as they are when it is put. *)
Definition honest (ps : list proposal) : Prop :=
  Forall (fun p => forall q, answered p = Question q -> shown q = with_arguments p) ps.
Definition honest_event (g : gate) (e : event) : Prop :=
  match e with
  | Reopen c _ q => Forall (fun s => call s = c -> shown q = args s) g
  | _ => True
  end.

(** [reach ps past g]: from what was proposed, by the events of [past] (the newest first). *)
Inductive reach (ps : list proposal) : list event -> gate -> Prop :=
  | Begin : forall g, honest ps -> propose ps = Ok g -> reach ps [] g
  | Next : forall past g e g', reach ps past g -> honest_event g e -> step g e = Ok g' ->
      reach ps (e :: past) g'.

(** The question [q] was put about call [c], for a person or for anybody who decides. *)
Definition was_asked (ps : list proposal) (past : list event) (c : nat) (h : bool) (q : request) :=
  (exists p, In p ps /\ of_call p = c /\ answered p = Question q /\
             asks (ruled p) = true /\ h = human (ruled p)) \/
  (exists r, In (Reopen c r q) past /\ asks r = true /\ h = human r).

(** By what call [s] may run. *)
Definition justified (ps : list proposal) (past : list event) (s : slot) (k : clearance) : Prop :=
  match k with
  | Ruled => exists p, In p ps /\ of_call p = call s /\ ruled p = Allow
  | ByRule n =>
      exists p, In p ps /\ of_call p = call s /\ ruled p = RequireApproval /\ answered p = Rule n
  | GrantedBy by_person =>
      exists h q r, was_asked ps past (call s) h q /\ In (Decide r) past /\
        on_call r = call s /\ permission r = id q /\ decided r = Granted /\
        (by_ r = Person \/ by_ r = Service) /\ by_person = is_person (by_ r) /\
        (h = true -> by_person = true) /\
        granted_as s = definition q /\
        args s = match edited r with Some a => a | None => shown q end
  end.

Definition slot_holds (ps : list proposal) (past : list event) (s : slot) : Prop :=
  match stands s with
  | Cleared k | Started k => justified ps past s k
  | Asked h _ q => was_asked ps past (call s) h q /\ shown q = args s
  | _ => True
  end.

Lemma was_asked_later : forall ps past e c h q,
  was_asked ps past c h q -> was_asked ps (e :: past) c h q.
Proof.
  intros ps past e c h q [H|(r & I & H)]; [left; exact H|right; exists r].
  split; [right; assumption|assumption].
Qed.

Lemma justified_later : forall ps past e s k,
  justified ps past s k -> justified ps (e :: past) s k.
Proof.
  intros ps past e s k H; destruct k; simpl in *; try exact H.
  destruct H as (h & q & r & A & I & H); exists h, q, r.
  split; [apply was_asked_later; assumption|]; split; [right; assumption|exact H].
Qed.

Lemma slot_holds_later : forall ps past e s,
  slot_holds ps past s -> slot_holds ps (e :: past) s.
Proof.
  intros ps past e s; unfold slot_holds; destruct (stands s); auto using justified_later.
  intros [H S]; split; [apply was_asked_later|]; assumption.
Qed.

Lemma slots_hold : forall ps seen g all, slots seen ps = Ok g -> incl ps all -> honest all ->
  Forall (slot_holds all []) g.
Proof.
  induction ps as [|p ps IH]; intros seen g all E I H; simpl in E.
  { injection E as <-; constructor. }
  destruct (existsb _ seen); [discriminate|].
  destruct (first_standing p) as [x|] eqn:F; [|discriminate].
  destruct (slots _ ps) as [g'|] eqn:G; [|discriminate]; injection E as <-.
  constructor; [|eapply IH; eauto; intros y Y; apply I; right; assumption].
  assert (P : In p all) by (apply I; left; reflexivity).
  assert (Hp : forall q, answered p = Question q -> shown q = with_arguments p)
    by (unfold honest in H; rewrite Forall_forall in H; apply H; assumption).
  unfold slot_holds; simpl; unfold first_standing in F.
  destruct (ruled p) eqn:R; destruct (answered p) eqn:A; try discriminate; injection F as <-;
    simpl; try exact Logic.I; try (exists p; tauto);
    (split; [left; exists p; rewrite R; tauto|apply Hp; reflexivity]).
Qed.

Lemma in_change : forall c f g s, In s (change c f g) ->
  exists s0, In s0 g /\ s = if call s0 =? c then f s0 else s0.
Proof.
  intros c f g s; unfold change; rewrite in_map_iff; intros (s0 & E & I); exists s0; auto.
Qed.

(** A change of one call by something that keeps the invariant keeps it for all. *)
Lemma change_holds : forall ps past e g c f,
  Forall (slot_holds ps past) g ->
  (forall s, In s g -> call s = c -> slot_holds ps past s -> slot_holds ps (e :: past) (f s)) ->
  Forall (slot_holds ps (e :: past)) (change c f g).
Proof.
  intros ps past e g c f H K; rewrite Forall_forall in *; intros s I.
  apply in_change in I; destruct I as (s0 & I & ->).
  destruct (call s0 =? c) eqn:E; [apply Nat.eqb_eq in E; auto|apply slot_holds_later; auto].
Qed.

Lemma move_is_change : forall g c legal f g',
  move g c legal f = Ok g' -> g' = change c f g.
Proof.
  unfold move; intros g c legal f g'; destruct (first_open g c legal); [discriminate|].
  intros E; injection E as <-; reflexivity.
Qed.

Lemma decide_is_change : forall g r g', decide g r = Ok g' ->
  g' = change (on_call r) (answer_slot r) g /\
  exists s h x q, In s g /\ call s = on_call r /\ stands s = Asked h x q /\
    id q = permission r /\ refusal_of h (recovers q) r = None.
Proof.
  unfold decide, find_call; intros g r g' E.
  destruct (find _ g) as [s|] eqn:F; [|discriminate].
  apply find_some in F; destruct F as [I C]; apply Nat.eqb_eq in C.
  destruct (stands s) as [|h x q| | | |] eqn:S; try discriminate.
  destruct (id q =? permission r) eqn:Q; [|discriminate]; apply Nat.eqb_eq in Q; simpl in E.
  destruct (refusal_of h (recovers q) r) eqn:R; [discriminate|]; injection E as <-.
  split; [reflexivity|]; exists s, h, x, q; auto.
Qed.

Definition distinct (g : gate) : Prop := NoDup (map call g).

Lemma change_keeps_calls : forall c f g, (forall s, call (f s) = call s) ->
  map call (change c f g) = map call g.
Proof.
  intros c f g H; unfold change; rewrite map_map; apply map_ext; intros s.
  destruct (call s =? c); auto.
Qed.

Lemma answer_keeps_call : forall r s, call (answer_slot r s) = call s.
Proof.
  intros r s; unfold answer_slot; destruct (stands s); try reflexivity.
  destruct (id r0 =? permission r); reflexivity.
Qed.

Lemma start_keeps_call : forall s, call (start_slot s) = call s.
Proof. intros s; unfold start_slot; destruct (stands s); reflexivity. Qed.

Lemma slots_are_distinct : forall ps seen g, slots seen ps = Ok g ->
  distinct g /\ forall c, In c seen -> ~ In c (map call g).
Proof.
  induction ps as [|p ps IH]; intros seen g E; simpl in E.
  { injection E as <-; split; [constructor|intros c _ []]. }
  destruct (existsb _ seen) eqn:X; [discriminate|].
  destruct (first_standing p); [|discriminate].
  destruct (slots _ ps) as [g'|] eqn:G; [|discriminate]; injection E as <-.
  apply IH in G; destruct G as [D N]; split; [constructor|]; simpl.
  - apply N; left; reflexivity.
  - exact D.
  - intros c I [<-|J]; [|apply (N c); [right|]; assumption].
    rewrite <- not_true_iff_false in X; apply X; apply existsb_exists.
    exists (of_call p); split; [assumption|apply Nat.eqb_refl].
Qed.

Lemma step_keeps_calls : forall g e g', step g e = Ok g' -> map call g' = map call g.
Proof.
  intros g e g' E; unfold step in E; destruct (is_open g), e; try discriminate.
  - apply decide_is_change in E; destruct E as [-> _].
    apply change_keeps_calls; apply answer_keeps_call.
  - unfold escalate in E; destruct (find_call c g) as [s|]; [|discriminate].
    destruct (stands s) as [|h [] q| | | |]; try discriminate; injection E as <-.
    apply change_keeps_calls; intros x; destruct (stands x); reflexivity.
  - unfold start in E; destruct (find _ g) as [s|]; [|discriminate].
    destruct (call s =? c); [|discriminate]; simpl in E.
    destruct (stands s); try discriminate; injection E as <-.
    apply change_keeps_calls; apply start_keeps_call.
  - apply move_is_change in E; subst; apply change_keeps_calls; reflexivity.
  - apply move_is_change in E; subst; apply change_keeps_calls; reflexivity.
  - apply move_is_change in E; subst; apply change_keeps_calls; intros x.
    destruct (stands x); reflexivity.
  - destruct (asks r); [|discriminate]; simpl in E.
    apply move_is_change in E; subst; apply change_keeps_calls; reflexivity.
  - apply move_is_change in E; subst; apply change_keeps_calls; reflexivity.
  - unfold back in E; destruct (find_call c g) as [s|]; [|discriminate].
    destruct (stands s); try discriminate; destruct (child0 =? child); [|discriminate].
    injection E as <-; apply change_keeps_calls; reflexivity.
Qed.

Lemma reach_is_distinct : forall ps past g, reach ps past g -> distinct g.
Proof.
  induction 1 as [g H E|past g e g' _ IH _ E].
  - destruct ps as [|p ps]; [discriminate|]; apply slots_are_distinct in E; tauto.
  - unfold distinct in *; rewrite (step_keeps_calls _ _ _ E); assumption.
Qed.

Lemma distinct_is_one : forall g s t, distinct g -> In s g -> In t g -> call s = call t -> s = t.
Proof.
  unfold distinct; induction g as [|x g IH]; intros s t D I J E; [destruct I|].
  inversion D as [|y l N D']; subst; destruct I as [->|I], J as [->|J]; auto.
  - exfalso; apply N; rewrite E; apply in_map; assumption.
  - exfalso; apply N; rewrite <- E; apply in_map; assumption.
Qed.

Lemma who_grants : forall h rec r, refusal_of h rec r = None -> decided r = Granted ->
  (by_ r = Person \/ by_ r = Service) /\ (h = true -> is_person (by_ r) = true).
Proof.
  unfold refusal_of; intros h rec r H D; rewrite D in H.
  destruct (by_ r); try discriminate; split; auto; intros ->; simpl in *; auto; discriminate.
Qed.

(** Every call that may run, or runs, is justified. *)
Lemma reach_holds : forall ps past g, reach ps past g -> Forall (slot_holds ps past) g.
Proof.
  induction 1 as [g H E|past g e g' R IH HE E].
  { destruct ps as [|p ps]; [discriminate|]; eapply slots_hold; eauto using incl_refl. }
  pose proof (reach_is_distinct _ _ _ R) as D.
  unfold step in E; destruct (is_open g) eqn:O, e; try discriminate.
  - apply decide_is_change in E; destruct E as [-> (s1 & h1 & x1 & q1 & I1 & C1 & S1 & Q1 & R1)].
    apply change_holds; [assumption|]; intros s I C H.
    assert (s = s1) by (apply (distinct_is_one g); auto; congruence); subst s1.
    unfold answer_slot; rewrite S1, Q1, Nat.eqb_refl.
    unfold slot_holds in H; rewrite S1 in H; destruct H as [W Sh].
    unfold slot_holds, standing_after; simpl.
    destruct (decided r) eqn:DR; simpl; try exact Logic.I.
    destruct (who_grants _ _ _ R1 DR) as [Who Needs].
    exists h1, q1, r; simpl.
    split; [apply was_asked_later; assumption|].
    repeat split; auto.
    destruct (edited r); [reflexivity|symmetry; assumption].
  - unfold escalate in E; destruct (find_call c g) as [s0|]; [|discriminate].
    destruct (stands s0) as [|h0 [] q0| | | |]; try discriminate; injection E as <-.
    apply change_holds; [assumption|]; intros s I C H.
    destruct (stands s) eqn:S; try (apply slot_holds_later; assumption).
    unfold slot_holds in *; rewrite S in H; simpl; destruct H; split; auto.
    apply was_asked_later; assumption.
  - unfold start in E; destruct (find _ g) as [s0|]; [|discriminate].
    destruct (call s0 =? c); [|discriminate]; simpl in E.
    destruct (stands s0); try discriminate; injection E as <-.
    apply change_holds; [assumption|]; intros s I C H; unfold start_slot.
    destruct (stands s) eqn:S; try (apply slot_holds_later; assumption).
    unfold slot_holds in *; rewrite S in H; simpl.
    apply justified_later with (e := Start c) in H; destruct c1; exact H.
  - apply move_is_change in E; subst; apply change_holds; [assumption|]; intros; exact Logic.I.
  - apply move_is_change in E; subst; apply change_holds; [assumption|]; intros; exact Logic.I.
  - apply move_is_change in E; subst; apply change_holds; [assumption|]; intros s I C H.
    destruct (stands s) eqn:S; try (apply slot_holds_later; assumption).
    unfold slot_holds in *; rewrite S in H; simpl.
    apply justified_later with (e := Retry c) in H; destruct c0; exact H.
  - destruct (asks r) eqn:A; [|discriminate]; simpl in E.
    apply move_is_change in E; subst; apply change_holds; [assumption|]; intros s I C H.
    unfold slot_holds; simpl; split.
    + right; exists r; subst; split; [left; reflexivity|auto].
    + simpl in HE; rewrite Forall_forall in HE; apply HE; assumption.
  - apply move_is_change in E; subst; apply change_holds; [assumption|]; intros; exact Logic.I.
  - unfold back in E; destruct (find_call c g) as [s0|]; [|discriminate].
    destruct (stands s0); try discriminate; destruct (child0 =? child); [|discriminate].
    injection E as <-; apply change_holds; [assumption|]; intros; exact Logic.I.
Qed.

(** An ask becomes a yes by nothing but an answer to that very question: by somebody who may
    decide (a person, where a person is needed), for the arguments that were shown or that the
    answer itself says, and for the tool as it was shown. *)
Theorem a_call_runs_only_by_its_own_answer : forall ps past g s k,
  reach ps past g -> In s g -> stands s = Cleared k \/ stands s = Started k ->
  justified ps past s k.
Proof.
  intros ps past g s k R I S; apply reach_holds in R; rewrite Forall_forall in R.
  specialize (R s I); unfold slot_holds in R; destruct S as [S|S]; rewrite S in R; assumption.
Qed.

(** Where a person is needed no service will do. *)
Corollary a_person_where_a_person_is_needed : forall ps past g s by_person p q,
  reach ps past g -> In s g -> stands s = Started (GrantedBy by_person) ->
  In p ps -> of_call p = call s -> ruled p = RequireHuman -> answered p = Question q ->
  (forall c r q', ~ In (Reopen c r q') past) -> NoDup (map of_call ps) -> by_person = true.
Proof.
  intros ps past g s b p q R I S P C H A N U.
  destruct (a_call_runs_only_by_its_own_answer _ _ _ _ _ R I (or_intror S))
    as (h & q' & r & W & _ & _ & _ & _ & _ & _ & Need & _).
  apply Need; destruct W as [(p' & P' & C' & _ & _ & ->)|(r' & X & _)]; [|destruct (N _ _ _ X)].
  assert (p' = p).
  { clear - P P' C C' U; rewrite <- C in C'; clear C; induction ps as [|y ps IH]; [destruct P|].
    inversion U; subst; destruct P as [->|P], P' as [->|P']; auto; exfalso.
    - apply H1; rewrite <- C'; apply in_map; assumption.
    - apply H1; rewrite C'; apply in_map; assumption. }
  subst; rewrite H; reflexivity.
Qed.

(** ** Nothing runs until all is settled *)

Theorem an_open_batch_starts_nothing : forall g c, is_open g = true -> step g (Start c) = Err WrongState.
Proof. intros g c O; unfold step; rewrite O; reflexivity. Qed.

Definition answered_by (past : list event) (c : nat) (q : request) : Prop :=
  exists r, In (Decide r) past /\ on_call r = c /\ permission r = id q.

Lemma still_asked_or_answered : forall ps past g, reach ps past g ->
  forall p q, In p ps -> answered p = Question q -> asks (ruled p) = true ->
  (exists s h x, In s g /\ call s = of_call p /\ stands s = Asked h x q) \/
  answered_by past (of_call p) q.
Proof.
  induction 1 as [g H E|past g e g' R IH HE E]; intros p q P A K.
  - left; destruct ps as [|p0 ps0]; [destruct P|]; unfold propose in E; clear H.
    revert E; generalize (@nil nat) as seen; revert g P.
    generalize (p0 :: ps0) as l; clear p0 ps0.
    induction l as [|y l IH]; intros g P seen E; [destruct P|]; simpl in E.
    destruct (existsb _ seen); [discriminate|].
    destruct (first_standing y) as [st|] eqn:F; [|discriminate].
    destruct (slots _ l) as [g0|] eqn:G; [|discriminate]; injection E as <-.
    destruct P as [->|P].
    + unfold first_standing in F; rewrite A in F.
      destruct (ruled p) eqn:RU; try discriminate; injection F as <-;
        (eexists; eexists; eexists; split; [left; reflexivity|simpl; auto]).
    + destruct (IH g0 P _ G) as (s & h & x & I & C & S); exists s, h, x; split; [right|]; auto.
  - destruct (IH p q P A K) as [(s & h & x & I & C & S)|(r & I & J)];
      [|right; exists r; split; [right; assumption|assumption]].
    assert (O : is_open g = true)
      by (unfold is_open; apply existsb_exists; exists s; unfold is_asked; rewrite S; auto).
    unfold step in E; rewrite O in E; destruct e as [r|c|c|c|c|c|c r q1|c ch|c ch]; try discriminate.
    + apply decide_is_change in E; destruct E as [-> _].
      destruct ((on_call r =? call s) && (permission r =? id q)) eqn:X.
      * apply andb_true_iff in X; destruct X as [X Y]; apply Nat.eqb_eq in X, Y.
        right; exists r; split; [left; reflexivity|split; congruence].
      * left; exists s, h, x; split; [|auto]; unfold change; apply in_map_iff; exists s.
        split; [|assumption]; destruct (call s =? on_call r) eqn:Z; [|reflexivity].
        unfold answer_slot; rewrite S; rewrite Nat.eqb_sym in Z; rewrite Z in X; simpl in X.
        rewrite Nat.eqb_sym in X; rewrite X; reflexivity.
    + unfold escalate in E; destruct (find_call c g) as [s0|]; [|discriminate].
      destruct (stands s0) as [|h0 [] q0| | | |]; try discriminate; injection E as <-; left.
      destruct (call s =? c) eqn:Z.
      * exists (put s (Asked h false q)), h, false; repeat split; auto.
        unfold change; apply in_map_iff; exists s; rewrite Z, S; auto.
      * exists s, h, x; repeat split; auto; unfold change; apply in_map_iff; exists s.
        rewrite Z; auto.
Qed.

(** Whenever a call of a batch starts, every question of that batch has been answered. *)
Theorem nothing_runs_until_all_is_settled : forall ps past g c,
  reach ps (Start c :: past) g ->
  forall p q, In p ps -> answered p = Question q -> asks (ruled p) = true ->
  answered_by past (of_call p) q.
Proof.
  intros ps past g c R p q P A K; inversion R as [|past0 g0 e g' R0 HE E]; subst.
  destruct (still_asked_or_answered _ _ _ R0 p q P A K) as [(s & h & x & I & C & S)|H]; [|exact H].
  exfalso; rewrite an_open_batch_starts_nothing in E; [discriminate|].
  unfold is_open; apply existsb_exists; exists s; unfold is_asked; rewrite S; auto.
Qed.

(** What the rules deny is never begun. *)
Theorem what_is_denied_never_runs : forall ps past g s p k, reach ps past g -> In s g ->
  In p ps -> of_call p = call s -> ruled p = Deny -> NoDup (map of_call ps) ->
  (forall c r q', ~ In (Reopen c r q') past) -> stands s <> Started k.
Proof.
  intros ps past g s p k R I P C D U N S.
  assert (One : forall p', In p' ps -> of_call p' = call s -> p' = p).
  { intros p' P' C'; clear - P P' C C' U; rewrite <- C in C'; clear C.
    induction ps as [|y ps IH]; [destruct P|].
    inversion U; subst; destruct P as [->|P], P' as [->|P']; auto; exfalso.
    - apply H1; rewrite <- C'; apply in_map; assumption.
    - apply H1; rewrite C'; apply in_map; assumption. }
  pose proof (a_call_runs_only_by_its_own_answer _ _ _ _ _ R I (or_intror S)) as J.
  destruct k; simpl in J.
  - destruct J as (p' & P' & C' & X); rewrite (One p' P' C') in X; congruence.
  - destruct J as (h & q & r & [(p' & P' & C' & _ & X & _)|(r' & X & _)] & _);
      [|destruct (N _ _ _ X)].
    rewrite (One p' P' C'), D in X; discriminate.
  - destruct J as (p' & P' & C' & X & _); rewrite (One p' P' C') in X; congruence.
Qed.

(** ** The ruling that is made again before a cleared call runs *)

Inductive again := RunIt | RefuseIt | AskAgain.

(** [rule_holds]: a standing rule covers the call as it is now. *)
Definition rule_again (r : ruling) (k : clearance) (granted_for is_now : option nat)
    (rule_holds : bool) : again :=
  match r with
  | Deny => RefuseIt
  | _ =>
      let another := match k, granted_for with
                     | GrantedBy _, Some d =>
                         negb (match is_now with Some n => d =? n | None => false end)
                     | _, _ => false
                     end in
      if another then AskAgain else
      match r, k with
      | Allow, _ => RunIt
      | _, GrantedBy true => RunIt
      | RequireApproval, GrantedBy false => RunIt
      | RequireApproval, ByRule _ => if rule_holds then RunIt else AskAgain
      | _, _ => AskAgain
      end
  end.

(** A clearance never beats what the rules have become. *)
Theorem a_clearance_never_beats_deny : forall k d n h, rule_again Deny k d n h = RefuseIt.
Proof. reflexivity. Qed.

Theorem what_runs_is_covered : forall r k d n h, rule_again r k d n h = RunIt ->
  r = Allow \/ k = GrantedBy true \/ (r = RequireApproval /\ k = GrantedBy false) \/
  (r = RequireApproval /\ (exists x, k = ByRule x) /\ h = true).
Proof.
  intros r k d n h; unfold rule_again; destruct r, k as [|[]|x];
    try (intros; discriminate); try (intros; tauto);
    repeat match goal with |- context [if ?b then _ else _] => destruct b eqn:? end;
    intros; try discriminate; eauto 10.
Qed.

(** A grant is for the tool as it was shown. *)
Theorem a_grant_is_for_no_other_tool : forall r b d n h,
  rule_again r (GrantedBy b) (Some d) n h = RunIt -> n = Some d.
Proof.
  intros r b d n h; unfold rule_again; destruct n as [m|]; [|destruct r; discriminate].
  destruct (d =? m) eqn:E; [apply Nat.eqb_eq in E; congruence|destruct r; discriminate].
Qed.

(** A stricter ruling lets no more run. *)
Theorem again_only_towards_stricter : forall r r' k d n h, looser r r' ->
  rule_again r' k d n h = RunIt -> rule_again r k d n h = RunIt.
Proof.
  intros r r' k d n h L; unfold rule_again; destruct r, r'; cbv in L; try lia; auto;
    try discriminate; destruct k as [|[]|x]; simpl;
    repeat match goal with |- context [if ?b then _ else _] => destruct b eqn:? end;
    try discriminate; auto.
Qed.
