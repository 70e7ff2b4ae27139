"""Starts a run, answers what it asks, prints what came of it."""
import os
import time

from chancery_client import AuthenticatedClient
from chancery_client.api.permissions import permissions_decide, permissions_list
from chancery_client.api.runs import runs_create, runs_show
from chancery_client.models import CreateRun, Decide

client = AuthenticatedClient(os.environ["CHANCERY_URL"], os.environ["CHANCERY_TOKEN"])
run = runs_create.sync(client=client, body=CreateRun(agent="pa", input_=os.environ["GOAL"]))
while run.status in ("pending", "running", "waiting"):
    for asked in permissions_list.sync(client=client, status="pending", run=run.id).items:
        permissions_decide.sync(asked.id, client=client, body=Decide(decision="grant"))
    time.sleep(0.05)
    run = runs_show.sync(run.id, client=client)
print(run.status, run.output)
