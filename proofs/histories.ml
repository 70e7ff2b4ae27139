(* Every state that a small batch can come to, with what each event does to it: a line of JSON
   each, with the events that lead there. The model is extracted from the proofs. *)

open Model

let text it = "\"" ^ it ^ "\""
let number = string_of_int
let truth it = if it then "true" else "false"
let maybe of_one = function None -> "null" | Some it -> of_one it
let list of_one it = "[" ^ String.concat "," (List.map of_one it) ^ "]"
let each of_ f = List.iter f of_

let ruling = function
  | Allow -> text "allow" | RequireApproval -> text "require_approval"
  | RequireHuman -> text "require_human" | Deny -> text "deny"
let decision = function
  | Granted -> text "granted" | Denied -> text "denied" | Expired -> text "expired"
  | Supplied -> text "supplied"
let actor = function
  | Person -> text "person" | Service -> text "service" | Agent -> text "agent"
  | System -> text "system"
let request q =
  Printf.sprintf "{\"id\":%d,\"shown\":%d,\"definition\":%s,\"recovers\":%s}" q.id q.shown
    (maybe number q.definition) (truth q.recovers)

let event = function
  | Decide r ->
      Printf.sprintf
        "{\"decide\":%d,\"permission\":%d,\"decision\":%s,\"by\":%s,\"edited\":%s,\"remember\":%s}"
        r.on_call r.permission (decision r.decided) (actor r.by_) (maybe number r.edited)
        (truth r.remember)
  | Escalate c -> Printf.sprintf "{\"escalate\":%d}" c
  | Start c -> Printf.sprintf "{\"start\":%d}" c
  | End_ c -> Printf.sprintf "{\"end\":%d}" c
  | Refuse c -> Printf.sprintf "{\"refuse\":%d}" c
  | Retry c -> Printf.sprintf "{\"retry\":%d}" c
  | Reopen (c, r, q) ->
      Printf.sprintf "{\"reopen\":%d,\"ruling\":%s,\"request\":%s}" c (ruling r) (request q)
  | Send (c, k) -> Printf.sprintf "{\"send\":%d,\"child\":%d}" c k
  | Back (c, k) -> Printf.sprintf "{\"back\":%d,\"child\":%d}" c k

let proposal p =
  let answer = match p.answered with
    | NoAnswer -> "null" | Question q -> request q | Rule n -> number n in
  Printf.sprintf "{\"call\":%d,\"arguments\":%d,\"ruling\":%s,\"answer\":%s}" p.of_call
    p.with_arguments (ruling p.ruled) answer

let error = function
  | Empty -> "empty" | Twice -> "twice" | NoSuchCall -> "no such call" | NotAsked -> "not asked"
  | NotNext -> "not next" | HumanRequired -> "human required" | NotADecider -> "not a decider"
  | NoSuchAnswer -> "no such answer" | NobodyAsked -> "nobody asked" | Standing -> "standing"
  | WrongState -> "wrong state"

let clearance = function
  | Ruled -> "ruled" | GrantedBy true -> "person" | GrantedBy false -> "service"
  | ByRule n -> "rule " ^ number n

(* What can be seen of a batch from outside, in the words that the test has for it. *)
let seen g =
  let join f = String.concat "," (List.filter_map f g) in
  if is_open g then
    "open " ^ join (fun s -> match s.stands with
      | Asked (_, escalates, q) ->
          Some (Printf.sprintf "%d/%d/%d/%b" s.call q.id s.args escalates)
      | _ -> None)
  else
    let turn = match next g with
      | None -> "none"
      | Some (Execute (c, k)) -> Printf.sprintf "execute %d by %s" c (clearance k)
      | Some (Unknown c) -> Printf.sprintf "unknown %d" c
      | Some (Turn_down (c, r)) ->
          let why = match r with
            | Policy -> "policy" | ByPerson -> "person" | TooLate -> "expired"
            | UnknownOutcome -> "unknown" in
          Printf.sprintf "refuse %d by %s" c why in
    let cleared = join (fun s -> match s.stands with
      | Cleared k | Started k -> Some (Printf.sprintf "%d/%d/%s" s.call s.args (clearance k))
      | _ -> None) in
    let granted = join (fun s -> Option.map (Printf.sprintf "%d/%d" s.call) s.granted_as) in
    let begun = join (fun s -> if s.begun then Some (number s.call) else None) in
    let away = join (fun s -> match s.stands with
      | Away k -> Some (Printf.sprintf "%d/%d" s.call k) | _ -> None) in
    let denied = List.exists (fun s -> s.said_no) g in
    Printf.sprintf "settled %s; cleared %s; granted as %s; begun %s; away %s; denied %b" turn
      cleared granted begun away denied

let outcome = function Ok g -> seen g | Err e -> "error: " ^ error e

let question c = { id = 10 + c; shown = c; definition = (if c = 0 then Some 5 else None);
                   recovers = false }
let proposals c =
  let of_ ruled answered = { of_call = c; with_arguments = c; ruled; answered } in
  [ of_ Allow NoAnswer; of_ Deny NoAnswer; of_ RequireApproval (Question (question c));
    of_ RequireHuman (Question (question c)); of_ RequireApproval (Rule 3) ]
(* What a gate must not take. *)
let bad c =
  let of_ ruled answered = { of_call = c; with_arguments = c; ruled; answered } in
  [ of_ RequireHuman (Rule 3); of_ RequireHuman NoAnswer; of_ RequireApproval NoAnswer ]

(* Who does what to a batch: answers that are tried on each question, and further events. *)
type hands = { replies : reply list; rulings : ruling list; children : bool; depth : int }

let reply decided by_ edited remember =
  { on_call = 0; permission = 0; decided; by_; edited; remember }
let every_reply =
  List.concat_map (fun decided -> List.concat_map (fun by_ ->
    List.map (fun (edited, remember) -> reply decided by_ edited remember)
      [ None, false; Some 50, false; None, true ])
    [ Person; Service; Agent; System ]) [ Granted; Denied; Expired; Supplied ]
let few_replies = [ reply Granted Person None false; reply Granted Service None false;
                    reply Denied Person None false ]

let args_of g c = match List.find_opt (fun s -> s.call = c) g with Some s -> s.args | None -> 0

(* Questions are put under three ids: with the batch, anew, and about an unknown outcome. *)
let events hands count g =
  let decide c = List.concat_map (fun permission ->
    List.map (fun r -> Decide { r with on_call = c; permission }) hands.replies)
    [ 10 + c; 100 + c; 200 + c ] in
  let reopen c =
    let q id recovers = { id = id + c; shown = args_of g c; definition = Some 7; recovers } in
    List.concat_map (fun r -> [ Reopen (c, r, q 100 false); Reopen (c, r, q 200 true) ])
      hands.rulings in
  let child c = if hands.children then [ Send (c, 7); Back (c, 7); Back (c, 8) ] else [] in
  List.concat_map (fun c ->
    decide c @ [ Escalate c; Start c; End_ c; Refuse c; Retry c ] @ reopen c @ child c)
    (List.init count Fun.id)
  (* A call that there is not. *)
  @ [ Decide { (reply Granted Person None false) with on_call = count; permission = 10 };
      Escalate count; Start count; End_ count; Back (count, 7) ]

let state ps path said =
  Printf.printf "{\"proposals\":%s,\"past\":%s,\"is\":%s}\n" (list proposal ps)
    (list event (List.rev path)) (text said)
let step_row e said = Printf.printf "{\"event\":%s,\"is\":%s}\n" (event e) (text said)

(* A line for each state, followed by a line for each event in it. *)
let explore hands ps =
  match propose ps with
  | Err _ as refused -> state ps [] (outcome refused)
  | Ok g ->
      let known = Hashtbl.create 1024 and queue = Queue.create () in
      let visit path g =
        if List.length path <= hands.depth && not (Hashtbl.mem known g) then
          (Hashtbl.add known g (); Queue.add (path, g) queue) in
      visit [] g;
      while not (Queue.is_empty queue) do
        let path, g = Queue.pop queue in
        state ps path (seen g);
        each (events hands (List.length ps) g) (fun e ->
          let after = step g e in
          step_row e (outcome after);
          match after with Ok g -> visit (e :: path) g | Err _ -> ())
      done

let print () =
  let one = { replies = every_reply; rulings = [ Allow; RequireApproval; RequireHuman; Deny ];
              children = true; depth = max_int } in
  let two = { replies = few_replies; rulings = [ RequireHuman ]; children = true; depth = 5 } in
  let three = { replies = List.filter (fun r -> r.by_ = Person) few_replies; rulings = []; children = false; depth = 3 } in
  each (proposals 0 @ bad 0) (fun a -> explore one [ a ]);
  each (proposals 0) (fun a ->
    state [ a; a ] [] (outcome (propose [ a; a ]));
    each (proposals 1) (fun b -> explore two [ a; b ];
      each (proposals 2) (fun c -> explore three [ a; b; c ])))
