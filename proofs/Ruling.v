(** The four rulings and how several become one: the strictest wins.
    Mirrors [Ruling] and the fold in [Verdict::new] of crates/domain/src/policy. *)

From Coq Require Import List Arith Lia Permutation.
Import ListNotations.

Inductive ruling := Allow | RequireApproval | RequireHuman | Deny.

Definition rank (r : ruling) : nat :=
  match r with Allow => 0 | RequireApproval => 1 | RequireHuman => 2 | Deny => 3 end.

Definition looser (a b : ruling) : Prop := rank a <= rank b.

Definition join (a b : ruling) : ruling := if rank a <=? rank b then b else a.

Definition strictest (l : list ruling) : ruling := fold_left join l Allow.

Definition asks (r : ruling) : bool :=
  match r with RequireApproval | RequireHuman => true | _ => false end.

Ltac by_cases := repeat (match goal with r : ruling |- _ => destruct r end);
  cbv; try reflexivity; try lia; try discriminate.

Theorem join_associative : forall a b c, join a (join b c) = join (join a b) c.
Proof. intros a b c; by_cases. Qed.

Theorem join_commutative : forall a b, join a b = join b a.
Proof. intros a b; by_cases. Qed.

Theorem join_idempotent : forall a, join a a = a.
Proof. intros a; by_cases. Qed.

Theorem deny_is_strongest : forall a, join Deny a = Deny /\ join a Deny = Deny.
Proof. intros a; split; by_cases. Qed.

Theorem allow_is_weakest : forall a, join Allow a = a /\ join a Allow = a.
Proof. intros a; split; by_cases. Qed.

Theorem looser_is_an_order :
  (forall a, looser a a) /\
  (forall a b c, looser a b -> looser b c -> looser a c) /\
  (forall a b, looser a b -> looser b a -> a = b) /\
  (forall a b, looser a b \/ looser b a).
Proof.
  unfold looser; repeat split; intros; try lia.
  destruct a, b; simpl in *; try reflexivity; lia.
Qed.

(** [join] is the least ruling that is as strict as both. *)
Theorem join_is_least_upper_bound :
  forall a b, looser a (join a b) /\ looser b (join a b) /\
    forall c, looser a c -> looser b c -> looser (join a b) c.
Proof.
  intros a b; unfold looser, join; destruct (rank a <=? rank b) eqn:E;
    [apply Nat.leb_le in E | apply Nat.leb_gt in E]; repeat split; intros; lia.
Qed.

Lemma fold_join : forall l a, fold_left join l a = join a (strictest l).
Proof.
  unfold strictest; induction l as [|x l IH]; intros a; simpl.
  - symmetry; apply allow_is_weakest.
  - rewrite (IH (join a x)), (IH (join Allow x)).
    destruct (allow_is_weakest x) as [-> _]; symmetry; apply join_associative.
Qed.

Lemma strictest_cons : forall x l, strictest (x :: l) = join x (strictest l).
Proof.
  intros x l; unfold strictest at 1; simpl.
  rewrite fold_join; destruct (allow_is_weakest x) as [-> _]; reflexivity.
Qed.

Lemma strictest_app : forall l m, strictest (l ++ m) = join (strictest l) (strictest m).
Proof. intros l m; unfold strictest at 1; rewrite fold_left_app; apply fold_join. Qed.

(** The order in which layers speak does not matter. *)
Theorem order_does_not_matter : forall l m, Permutation l m -> strictest l = strictest m.
Proof.
  induction 1; try congruence.
  - rewrite !strictest_cons; congruence.
  - rewrite !strictest_cons, !join_associative, (join_commutative y x); reflexivity.
Qed.

(** Nor does saying a thing twice. *)
Theorem repetition_does_not_matter : forall x l, In x l -> strictest (x :: l) = strictest l.
Proof.
  induction l as [|y l IH]; intros I; [destruct I|].
  destruct I as [->|I]; rewrite !strictest_cons.
  - rewrite join_associative, join_idempotent; reflexivity.
  - rewrite join_associative, (join_commutative x y), <- join_associative, <- strictest_cons.
    rewrite IH by assumption; reflexivity.
Qed.

(** One word is enough to deny, and nothing outweighs it. *)
Theorem one_denial_denies : forall l, In Deny l -> strictest l = Deny.
Proof.
  induction l as [|y l IH]; intros I; [destruct I|]; rewrite strictest_cons.
  destruct I as [->|I]; [|rewrite IH by assumption]; apply deny_is_strongest.
Qed.

(** The outcome allows only if every layer allows. *)
Theorem allows_only_if_all_allow :
  forall l, strictest l = Allow <-> Forall (fun r => r = Allow) l.
Proof.
  induction l as [|x l IH]; split; intros H; try constructor; try reflexivity.
  - rewrite strictest_cons in H; destruct x, (strictest l); cbv in H; congruence.
  - apply IH; rewrite strictest_cons in H; destruct x, (strictest l); cbv in H; congruence.
  - inversion H; subst; rewrite strictest_cons, (proj2 IH) by assumption; reflexivity.
Qed.

(** A word more never loosens. *)
Theorem a_word_more_never_loosens :
  forall l m n, looser (strictest (l ++ n)) (strictest (l ++ m ++ n)).
Proof.
  intros l m n; rewrite !strictest_app.
  destruct (strictest l), (strictest m), (strictest n); cbv; lia.
Qed.

(** Nor does a stricter word in the place of another. *)
Theorem stricter_words_never_loosen :
  forall l m, Forall2 looser l m -> looser (strictest l) (strictest m).
Proof.
  induction 1 as [|x y l m H _ IH]; [cbv; lia|].
  rewrite !strictest_cons; revert H IH.
  destruct x, y, (strictest l), (strictest m); cbv; lia.
Qed.
