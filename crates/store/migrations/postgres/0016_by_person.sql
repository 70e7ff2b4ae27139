-- What a person has of mail, contracts and standing rules is found by whose it is: lists are drawn
-- of it, and looked at again and again for whether they have changed.
CREATE INDEX mails_user ON mails (user_id, id);
CREATE INDEX mail_rejections_user ON mail_rejections (user_id, id);
CREATE INDEX contracts_user ON contracts (user_id, id);
CREATE INDEX standing_rules_user ON standing_rules (user_id, id);
