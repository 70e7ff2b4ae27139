(** The functions of the model as a program, for the tests to hold the code against. *)

From Coq Require Extraction ExtrOcamlBasic ExtrOcamlNatInt ExtrOcamlNativeString.
From Chancery Require Ruling Bounds Delegation Verdict Latch.

Extraction Language OCaml.

Extraction "model.ml"
  Ruling.join Ruling.strictest Ruling.asks
  Bounds.glob Bounds.permits Bounds.meet Bounds.named
  Delegation.chain Delegation.pass Delegation.within Delegation.too_deep
  Verdict.verdict Verdict.offers
  Latch.propose Latch.step Latch.is_open Latch.next Latch.rule_again.
