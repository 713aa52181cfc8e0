// A provider of OpenID Connect for tests: npm's oidc-provider, which lets the user in whom a form names.
// The arguments are its port and a JSON object of clients; it prints a line when it listens.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [, , modules, port, clients] = process.argv;
const require = createRequire(pathToFileURL(`${modules}/`));
const { default: Provider } = await import(pathToFileURL(require.resolve("oidc-provider")));

const issuer = `http://127.0.0.1:${port}`;
const provider = new Provider(issuer, {
  clients: JSON.parse(clients),
  claims: { openid: ["sub", "groups"] },
  conformIdTokenClaims: false,
  pkce: { required: () => true },
  features: { devInteractions: { enabled: true }, rpInitiatedLogout: { enabled: true } },
  findAccount: (_ctx, id) => ({
    accountId: id,
    claims: () => ({ sub: id, groups: id.startsWith("root") ? ["admins"] : ["people"] }),
  }),
});
const server = provider.listen(Number(port), "127.0.0.1", () => console.log(issuer));
process.on("SIGTERM", () => server.close());
