(** The eight layers over one call. Mirrors [Policy::rule] of crates/domain/src/policy. *)

From Coq Require Import List Bool Arith Lia String.
From Chancery Require Import Ruling Bounds Delegation.
Import ListNotations.

Record agent := { active : bool; tools : option (list string); deny_tools : list string }.

(** What is known of a tool: what its risk asks for, and every rule over what it can do. *)
Record tool := { risk : ruling; capabilities : list ruling }.

Inductive fitness := Fits | UnknownTool | BadArguments.

Record question := {
  asker : option agent;
  name : string;
  facts : option tool;
  fit : fitness;
  delegated : option bounds;
  person : option bounds;
  arguments : list ruling;
  limits : list ruling }.

Definition deny_unless (b : bool) : ruling := if b then Allow else Deny.

Definition own (a : agent) : bounds := {| allowed := tools a; denied := deny_tools a |}.

(** A role that lists a tool by its exact name waives the layer of risk. *)
Definition waives (a : agent) (t : string) : bool :=
  match tools a with None => false | Some l => existsb (String.eqb t) l end.

Definition identity_word q :=
  match asker q with None => Deny | Some a => deny_unless (active a) end.
Definition tool_word q :=
  match facts q, fit q with Some _, Fits => Allow | _, _ => Deny end.
Definition delegation_word q :=
  deny_unless (within (delegated q) (name q) && within (person q) (name q)).
Definition role_word q :=
  match asker q with None => Allow | Some a => deny_unless (permits (own a) (name q)) end.
Definition risk_word q :=
  match facts q with
  | None => Allow
  | Some t => match asker q with
              | Some a => if waives a (name q) then Allow else risk t
              | None => risk t
              end
  end.
Definition capability_word q :=
  match facts q with None => Allow | Some t => strictest (capabilities t) end.
Definition arguments_word q := strictest (arguments q).
Definition limits_word q := strictest (limits q).

Definition words (q : question) : list ruling :=
  [identity_word q; tool_word q; delegation_word q; role_word q; risk_word q;
   capability_word q; arguments_word q; limits_word q].

Definition verdict (q : question) : ruling := strictest (words q).

(** A model is shown what is not denied, arguments and limits aside. *)
Definition offers (q : question) : bool :=
  match verdict {| asker := asker q; name := name q; facts := facts q; fit := Fits;
                   delegated := delegated q; person := person q;
                   arguments := []; limits := [] |}
  with Deny => false | _ => true end.

(** The outcome allows only if every layer allows. *)
Theorem allowed_only_by_every_layer : forall q,
  verdict q = Allow <-> Forall (fun w => w = Allow) (words q).
Proof. intros q; apply allows_only_if_all_allow. Qed.

(** Any layer alone can deny. *)
Theorem any_layer_denies : forall q, In Deny (words q) -> verdict q = Deny.
Proof. intros q; apply one_denial_denies. Qed.

Theorem nobody_unknown_acts : forall q,
  asker q = None \/ facts q = None \/ fit q <> Fits -> verdict q = Deny.
Proof.
  intros q H; apply any_layer_denies; unfold words; simpl.
  destruct H as [H|[H|H]].
  - left; unfold identity_word; rewrite H; reflexivity.
  - right; left; unfold tool_word; rewrite H; reflexivity.
  - right; left; unfold tool_word; destruct (facts q), (fit q); congruence.
Qed.

(** ** Narrowing. [tighter q q']: in [q'] somebody has narrowed something, and nothing else. *)

Definition narrower (b b' : option bounds) : Prop :=
  forall t, within b' t = true -> within b t = true.

Definition narrower_agent (a a' : option agent) : Prop :=
  match a, a' with
  | _, None => True
  | None, Some _ => False
  | Some a, Some a' =>
      (active a' = true -> active a = true) /\
      narrower (Some (own a)) (Some (own a')) /\
      (* No name is newly listed, for that would waive the layer of risk. *)
      (forall t, waives a' t = true -> waives a t = true)
  end.

Definition narrower_tool (t t' : option tool) : Prop :=
  match t, t' with
  | _, None => True
  | None, Some _ => False
  | Some t, Some t' =>
      looser (risk t) (risk t') /\ looser (strictest (capabilities t)) (strictest (capabilities t'))
  end.

Record tighter (q q' : question) : Prop := {
  same_name : name q = name q';
  t_agent : narrower_agent (asker q) (asker q');
  t_tool : narrower_tool (facts q) (facts q');
  t_fit : fit q = fit q' \/ fit q = Fits;
  t_delegated : narrower (delegated q) (delegated q');
  t_person : narrower (person q) (person q');
  t_arguments : looser (strictest (arguments q)) (strictest (arguments q'));
  t_limits : looser (strictest (limits q)) (strictest (limits q')) }.

Lemma deny_unless_looser : forall b b', (b' = true -> b = true) ->
  looser (deny_unless b) (deny_unless b').
Proof. intros [] [] H; cbv; try lia; discriminate H; reflexivity. Qed.

Lemma looser_deny : forall r, looser r Deny.
Proof. intros []; cbv; lia. Qed.

(** Narrowing of any kind never widens what may be done. *)
Theorem narrowing_never_widens : forall q q', tighter q q' -> looser (verdict q) (verdict q').
Proof.
  intros q q' [N A T F D P G L].
  destruct (asker q') as [a'|] eqn:EA;
    [|rewrite (nobody_unknown_acts q') by tauto; apply looser_deny].
  destruct (facts q') as [t'|] eqn:ET;
    [|rewrite (nobody_unknown_acts q') by tauto; apply looser_deny].
  destruct (asker q) as [a|] eqn:EA0; [|destruct A].
  destruct (facts q) as [t|] eqn:ET0; [|destruct T].
  destruct A as (Aa & Ao & Aw), T as (Tr & Tc).
  apply stricter_words_never_loosen; unfold words.
  repeat (apply Forall2_cons || apply Forall2_nil);
    unfold identity_word, tool_word, delegation_word, role_word, risk_word, capability_word,
      arguments_word, limits_word; rewrite ?EA, ?ET, ?EA0, ?ET0, ?N; try assumption.
  - apply deny_unless_looser; assumption.
  - destruct F as [->| ->]; destruct (fit q'); cbv; lia.
  - apply deny_unless_looser; rewrite !andb_true_iff; intros [X Y]; split; auto.
  - apply deny_unless_looser; apply Ao.
  - destruct (waives a (name q')) eqn:W; [destruct (waives a' (name q')); cbv; lia|].
    destruct (waives a' (name q')) eqn:W'; [|assumption].
    rewrite (Aw _ W') in W; discriminate.
Qed.

(** ** The kinds of rules that an organisation's files can add. *)

Definition with_agent (q : question) (a : agent) : question :=
  {| asker := Some a; name := name q; facts := facts q; fit := fit q; delegated := delegated q;
     person := person q; arguments := arguments q; limits := limits q |}.
Definition with_arguments (q : question) (l : list ruling) : question :=
  {| asker := asker q; name := name q; facts := facts q; fit := fit q; delegated := delegated q;
     person := person q; arguments := l; limits := limits q |}.
Definition with_tool (q : question) (t : tool) : question :=
  {| asker := asker q; name := name q; facts := Some t; fit := fit q; delegated := delegated q;
     person := person q; arguments := arguments q; limits := limits q |}.
Definition with_delegated (q : question) (b : option bounds) : question :=
  {| asker := asker q; name := name q; facts := facts q; fit := fit q; delegated := b;
     person := person q; arguments := arguments q; limits := limits q |}.

Lemma narrower_refl : forall b, narrower b b.
Proof. intros b t H; exact H. Qed.

Lemma narrower_agent_refl : forall a, narrower_agent a a.
Proof. intros [a|]; simpl; auto; repeat split; auto using narrower_refl. Qed.

Lemma narrower_tool_refl : forall t, narrower_tool t t.
Proof. intros [t|]; simpl; unfold looser; auto. Qed.

Ltac one_thing := constructor; simpl; auto using narrower_refl, narrower_agent_refl,
  narrower_tool_refl; try (unfold looser; lia).

(** What may be called at all is shown: the two walls cannot disagree. *)
Theorem what_is_not_denied_is_offered : forall q, verdict q <> Deny -> offers q = true.
Proof.
  intros q H; unfold offers.
  set (shown := {| asker := asker q; name := name q; facts := facts q; fit := Fits;
                   delegated := delegated q; person := person q; arguments := []; limits := [] |}).
  assert (L : looser (verdict shown) (verdict q))
    by (apply narrowing_never_widens; one_thing; cbv; lia).
  destruct (verdict shown), (verdict q); try reflexivity; try congruence; cbv in L; lia.
Qed.

Theorem a_rule_over_arguments_more : forall q r,
  looser (verdict q) (verdict (with_arguments q (r :: arguments q))).
Proof.
  intros q r; apply narrowing_never_widens; one_thing.
  apply (a_word_more_never_loosens [] [r] (arguments q)).
Qed.

Theorem a_denied_tool_more : forall q a e, asker q = Some a ->
  looser (verdict q) (verdict (with_agent q
    {| active := active a; tools := tools a; deny_tools := e :: deny_tools a |})).
Proof.
  intros q a e E; apply narrowing_never_widens; one_thing; rewrite E; simpl; repeat split; auto.
  intros t; apply (a_denial_more_never_widens (own a)).
Qed.

Theorem a_listed_tool_less : forall q a l l', asker q = Some a -> tools a = Some l -> incl l' l ->
  looser (verdict q) (verdict (with_agent q
    {| active := active a; tools := Some l'; deny_tools := deny_tools a |})).
Proof.
  intros q a l l' E T I; apply narrowing_never_widens; one_thing; rewrite E; simpl;
    repeat split; auto.
  - intros t; unfold own; rewrite T; apply an_entry_less_never_widens; assumption.
  - intros t; unfold waives; simpl; rewrite T, !existsb_exists.
    intros (x & X & Y); exists x; auto.
Qed.

Theorem a_list_of_patterns_where_none_was : forall q a l, asker q = Some a -> tools a = None ->
  (forall t, existsb (String.eqb t) l = false) \/ waives {| active := active a; tools := Some l;
     deny_tools := deny_tools a |} (name q) = false ->
  looser (verdict q) (verdict (with_agent q
    {| active := active a; tools := Some l; deny_tools := deny_tools a |})).
Proof.
  intros q a l E T W.
  assert (V : waives {| active := active a; tools := Some l; deny_tools := deny_tools a |}
                (name q) = false) by (destruct W as [W|W]; [apply W|assumption]).
  unfold waives in V; simpl in V.
  apply stricter_words_never_loosen; unfold words.
  repeat (apply Forall2_cons || apply Forall2_nil);
    unfold identity_word, tool_word, delegation_word, role_word, risk_word, capability_word,
      arguments_word, limits_word, waives; simpl; rewrite ?E, ?T, ?V; simpl;
    try (unfold looser; lia).
  - apply deny_unless_looser; unfold own; simpl; rewrite T.
    apply a_list_where_none_was_never_widens.
Qed.

Theorem a_deactivated_agent_does_nothing : forall q a,
  asker q = Some a -> active a = false -> verdict q = Deny.
Proof.
  intros q a E A; apply any_layer_denies; left; unfold identity_word; rewrite E, A; reflexivity.
Qed.

Theorem a_rule_over_a_capability_more : forall q t r, facts q = Some t ->
  looser (verdict q) (verdict (with_tool q
    {| risk := risk t; capabilities := r :: capabilities t |})).
Proof.
  intros q t r E; apply narrowing_never_widens; one_thing; rewrite E; simpl; split;
    [unfold looser; lia|].
  apply (a_word_more_never_loosens [] [r] (capabilities t)).
Qed.

(** Whoever acts further down a chain may do no more than whoever acts above. *)
Theorem further_down_is_no_freer : forall q first more given, Forall link_plain more ->
  looser (verdict (with_delegated q (chain given first)))
         (verdict (with_delegated q (chain given (first ++ more)))).
Proof.
  intros q first more given P; apply narrowing_never_widens; one_thing.
  intros t; apply a_longer_chain_grants_no_more; assumption.
Qed.
