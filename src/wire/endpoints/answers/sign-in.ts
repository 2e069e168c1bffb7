import * as z from 'zod'
import { ENTITLEMENTS, role } from '../../management.ts'
import { uuid } from '../../management-fields.ts'
import { deleted, list, time } from './parts.ts'

/** Schemas of the endpoints that sign in, and of what a signed-in user has. */

const organization = z.strictObject({ id: uuid, name: z.string(), slug: z.string() })
const user = z.strictObject({ id: uuid, email: z.string(), name: z.string() })

/** What `PublicKeyCredential.parseCreationOptionsFromJSON`, or `parseRequestOptionsFromJSON`, reads. */
const ceremony = z.strictObject({ options: z.looseObject({ challenge: z.string() }) })

const signedIn = z
  .strictObject({ user, organization, role, session: z.strictObject({ id: z.string(), expires_at: time }) })
  .meta({ id: 'SignedIn' })

const session = z
  .strictObject({
    id: z.string(),
    method: z.enum(['passkey', 'oidc', 'local']),
    user_agent: z.string(),
    is_current: z.boolean(),
    signed_in_at: time,
    last_seen_at: time,
    expires_at: time,
  })
  .meta({ id: 'Session' })

const passkey = z
  .strictObject({
    id: uuid,
    name: z.string(),
    transports: z.array(z.string()),
    last_used_at: time.nullable(),
    created_at: time,
  })
  .meta({ id: 'Passkey' })

export const signInAnswers = {
  'setup.show': z.strictObject({
    user,
    organization,
    role,
    expires_at: time,
    /** With whose account the member can sign in instead of with a passkey. */
    identity_provider: z.strictObject({ issuer: z.string() }).nullable(),
  }),
  'setup.begin': ceremony,
  'setup.finish': signedIn,
  'sign-in.begin': ceremony,
  'sign-in.finish': signedIn,
  'sign-in.local': signedIn,
  'sign-in.methods': z.strictObject({ passkey: z.boolean(), oidc: z.boolean(), local: z.boolean() }),
  /** The page of the provider. */
  'sign-in.oidc-begin': z.strictObject({ url: z.string() }),
  'local-members.list': list(
    z.strictObject({ user, organization, role, is_current: z.boolean() }).meta({ id: 'LocalMember' }),
  ),
  'local-members.switch': signedIn,
  'me.show': z.strictObject({
    user,
    organization,
    role,
    entitlements: z.array(z.enum(ENTITLEMENTS)),
    /** The reach of each permission that the user has. */
    permissions: z.record(z.string(), z.enum(['own', 'organization', 'installation'])),
    session: z.strictObject({ id: z.string(), signed_in_at: time, expires_at: time }),
    base_url: z.string(),
  }),
  'me.sign-out': deleted,
  'sessions.list': list(session),
  'sessions.end': deleted,
  'passkeys.list': list(passkey),
  'passkeys.begin': ceremony,
  'passkeys.finish': passkey,
  'passkeys.remove': deleted,
  'users.setup-link': z.strictObject({ token: z.string(), expires_at: time }),
}
