// A certified OpenID provider with one person in it, who is known there and agrees to everything.
import http from 'node:http';
import { createRequire } from 'node:module';

const [, , modules, redirect] = process.argv;
const require = createRequire(`${modules}/`);
const { default: Provider } = await import(require.resolve('oidc-provider'));
const server = http.createServer();
await new Promise((listening) => server.listen(0, '127.0.0.1', listening));
const issuer = `http://127.0.0.1:${server.address().port}`;
const provider = new Provider(issuer, {
  clients: [{ client_id: 'chancery', client_secret: 'secret/+', redirect_uris: [redirect] }],
  pkce: { required: () => true },
  claims: { openid: ['sub'], profile: ['preferred_username', 'groups'] },
  findAccount: (_, id) => ({
    accountId: id,
    claims: () => ({ sub: id, preferred_username: 'lin', groups: ['staff'] }),
  }),
  features: { devInteractions: { enabled: false } },
  interactions: { url: (_, it) => `/interaction/${it.uid}` },
  cookies: { keys: ['test'] },
});
const answer = provider.callback();
server.on('request', async (request, response) => {
  if (!request.url.startsWith('/interaction/')) return answer(request, response);
  const { prompt, params, session } = await provider.interactionDetails(request, response);
  if (prompt.name === 'login') {
    return provider.interactionFinished(request, response, { login: { accountId: 'u-1' } });
  }
  const grant = new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  grant.addOIDCScope(params.scope);
  const grantId = await grant.save();
  return provider.interactionFinished(request, response, { consent: { grantId } });
});
console.log(issuer);
