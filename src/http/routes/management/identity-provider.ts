import { type IdentityProviderRow, selectProvider } from '../../../admin/identity-provider.store.ts'
import { removeProvider, setProvider } from '../../../admin/identity-provider.ts'
import type { AppContext } from '../../context.ts'
import type { HandlersOf } from './mount-endpoints.ts'
import { redirectUri } from './sign-in.ts'

/** An organization without a provider has one all the same, of which nothing is set: its redirect URI is needed before. */
const present = (context: AppContext, row: IdentityProviderRow | null) => ({
  issuer: row?.issuer ?? null,
  client_id: row?.clientId ?? null,
  client_secret_set: typeof row?.sealedClientSecret === 'string',
  redirect_uri: redirectUri(context),
  created_at: row?.createdAt ?? null,
  updated_at: row?.updatedAt ?? null,
})

export const identityProviderHandlers: HandlersOf<'identity-provider'> = {
  'identity-provider.show': async ({ context, scope }) => present(context, await selectProvider(scope)),
  'identity-provider.replace': async ({ context, scope, body }) => {
    const { issuer, client_id: clientId, client_secret: clientSecret } = body
    return present(context, await setProvider(scope, { issuer, clientId, clientSecret }))
  },
  'identity-provider.remove': async ({ scope }) => {
    await removeProvider(scope)
    return { id: scope.organizationId, deleted: true }
  },
}
