(* Every small input of the model with what the model says, a line of JSON each. The model is
   extracted from the proofs; here inputs are only listed, and nothing is decided. *)

open Model

let text it = "\"" ^ it ^ "\""
let list of_one it = "[" ^ String.concat "," (List.map of_one it) ^ "]"
let maybe of_one = function None -> "null" | Some it -> of_one it
let number = string_of_int
let truth it = if it then "true" else "false"
let row kind fields =
  let field (name, it) = Printf.sprintf "\"%s\":%s" name it in
  print_endline ("{" ^ String.concat "," (List.map field (("row", text kind) :: fields)) ^ "}")

let ruling = function
  | Allow -> text "allow" | RequireApproval -> text "require_approval"
  | RequireHuman -> text "require_human" | Deny -> text "deny"
let rulings = [ Allow; RequireApproval; RequireHuman; Deny ]

(* Lists are kept sorted and without repetition in the code. *)
let sorted it = List.sort_uniq compare it
let bounds it =
  let allowed = match it.allowed with
    | None -> "" | Some it -> "\"allowed_tools\":" ^ list text (sorted it) ^ "," in
  "{" ^ allowed ^ "\"denied_tools\":" ^ list text (sorted it.denied) ^ "}"

let rec subsets = function
  | [] -> [ [] ]
  | it :: rest -> let without = subsets rest in without @ List.map (fun s -> it :: s) without
let rec tuples n of_ =
  if n = 0 then [ [] ]
  else List.concat_map (fun it -> List.map (fun rest -> it :: rest) (tuples (n - 1) of_)) of_
let up_to n of_ = List.concat_map (fun n -> tuples n of_) (List.init (n + 1) Fun.id)
let options of_ = None :: List.map Option.some of_
let each of_ f = List.iter f of_

let joins () =
  each rulings (fun a -> each rulings (fun b ->
    row "join" [ "a", ruling a; "b", ruling b; "is", ruling (join a b) ]))

let globs () =
  let words n letters = List.map (String.concat "") (up_to n letters) in
  each (words 4 [ "a"; "b"; "*" ]) (fun p -> each (words 4 [ "a"; "b" ]) (fun n ->
    row "glob" [ "pattern", text p; "name", text n; "is", truth (glob p n) ]))

let three = [ "a"; "ab"; "b" ]
let permitted b = list truth (List.map (permits b) three)
let all_bounds =
  let entries = subsets [ "a"; "ab"; "a*" ] in
  List.concat_map (fun allowed -> List.map (fun denied -> { allowed; denied }) entries)
    (options entries)

let meets () =
  each (subsets three) (fun known ->
    each all_bounds (fun a ->
      let met = named known a in
      row "named" [ "known", list text known; "a", bounds a; "is", bounds met;
                    "permits", permitted met ];
      each all_bounds (fun b ->
        let met = meet known a b in
        row "meet" [ "known", list text known; "a", bounds a; "b", bounds b; "is", bounds met;
                     "permits", permitted met ])))

let limit allowed denied = { allowed; denied }
let links =
  let roles = [ None; Some (limit (Some [ "a*" ]) []); Some (limit None [ "ab" ]) ] in
  let users = [ None; Some (limit (Some [ "a"; "b" ]) []) ] in
  let asked = [ None; Some (limit (Some [ "*" ]) [ "b" ]); Some (limit None [ "a*" ]) ] in
  List.concat_map (fun link_known -> List.concat_map (fun link_role ->
    List.concat_map (fun link_user -> List.map (fun link_asked ->
      { link_known; link_role; link_user; link_asked }) asked) users) roles)
    [ [ "a"; "ab" ]; three ]

let chains () =
  List.iteri (fun n it -> row "link" [ "n", number n; "known", list text it.link_known;
    "role", maybe bounds it.link_role; "user", maybe bounds it.link_user;
    "asked", maybe bounds it.link_asked ]) links;
  let numbered = List.mapi (fun n it -> (n, it)) links in
  each [ None; Some (limit (Some [ "a*"; "b" ]) []) ] (fun given ->
    each (List.concat_map (fun n -> tuples n numbered) [ 1; 2; 3 ]) (fun path ->
      let met = chain given (List.map snd path) in
      row "chain" [ "given", maybe bounds given; "links", list (fun (n, _) -> number n) path;
        "is", maybe bounds met; "permits", list truth (List.map (within met) three) ]))

let agents =
  None :: List.concat_map (fun active -> List.concat_map (fun tools ->
    List.map (fun deny_tools -> Some { active; tools; deny_tools }) [ []; [ "a" ]; [ "a*" ] ])
    [ None; Some []; Some [ "a" ]; Some [ "a*" ]; Some [ "b" ] ]) [ true; false ]
let some_facts =
  None :: List.concat_map (fun risk -> List.map (fun capabilities -> Some { risk; capabilities })
    ([] :: List.map (fun it -> [ it ]) rulings @ [ [ Allow; RequireHuman ]; [ Deny; Allow ] ]))
    rulings
let agent it = Printf.sprintf "{\"active\":%s,\"tools\":%s,\"deny_tools\":%s}"
  (truth it.active) (maybe (list text) it.tools) (list text it.deny_tools)
let facts_of it = Printf.sprintf "{\"risk\":%s,\"capabilities\":%s}"
  (ruling it.risk) (list ruling it.capabilities)
let fitness = function
  | Fits -> text "fits" | UnknownTool -> text "unknown_tool" | BadArguments -> text "bad_arguments"
let asked q =
  row "verdict" [ "agent", maybe agent q.asker; "tool", text q.name;
    "facts", maybe facts_of q.facts; "fit", fitness q.fit;
    "delegated", maybe bounds q.delegated; "person", maybe bounds q.person;
    "arguments", list ruling q.arguments; "limits", list ruling q.limits;
    "is", ruling (verdict q); "offers", truth (offers q) ]

let verdicts () =
  let some_bounds = [ None; Some (limit (Some []) []); Some (limit (Some [ "a*" ]) []);
                      Some (limit None [ "a" ]) ] in
  each agents (fun asker -> each some_facts (fun facts ->
    each some_bounds (fun delegated -> each some_bounds (fun person ->
      asked { asker; name = "a"; facts; fit = Fits; delegated; person;
              arguments = []; limits = [] }))));
  let some_agents = [ None; Some { active = true; tools = None; deny_tools = [] };
                      Some { active = true; tools = Some [ "a" ]; deny_tools = [] } ] in
  let few_facts = None :: List.map (fun risk -> Some { risk; capabilities = [] }) rulings in
  each some_agents (fun asker -> each few_facts (fun facts ->
    each [ Fits; UnknownTool; BadArguments ] (fun fit ->
      each (up_to 2 rulings) (fun arguments -> each (up_to 2 rulings) (fun limits ->
        asked { asker; name = "a"; facts; fit; delegated = None; person = None;
                arguments; limits })))))

let depths () =
  let few = List.init 6 Fun.id in
  each few (fun n -> each few (fun max ->
    row "depth" [ "ancestors", number n; "max", number max; "is", truth (too_deep n max) ]))

let clearance = function
  | Ruled -> text "ruled" | GrantedBy true -> text "person" | GrantedBy false -> text "service"
  | ByRule n -> text ("rule " ^ number n)

let agains () =
  each rulings (fun r -> each [ Ruled; GrantedBy true; GrantedBy false; ByRule 3 ] (fun k ->
    each (options [ 1; 2 ]) (fun granted_for -> each (options [ 1; 2 ]) (fun is_now ->
      each [ true; false ] (fun holds ->
        let said = match rule_again r k granted_for is_now holds with
          | RunIt -> "run" | RefuseIt -> "refuse" | AskAgain -> "ask" in
        row "again" [ "ruling", ruling r; "clearance", clearance k;
          "granted_as", maybe number granted_for; "is_now", maybe number is_now;
          "rule", truth holds; "is", text said ])))))

let () =
  match Sys.argv with
  | [| _; "authority" |] ->
      joins (); globs (); meets (); chains (); verdicts (); depths (); agains ()
  | [| _; "latch" |] -> Histories.print ()
  | _ -> prerr_endline "say which: authority or latch"; exit 2
