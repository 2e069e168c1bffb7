import * as z from 'zod'
import { slug, text, uuid, WEB_ADDRESS } from './management-fields.ts'
import { isPlainText } from './page-cursor.ts'

/** Bodies of the endpoints that sign in. */

/** Characters of an answer of an authenticator, as JSON. An attestation is below 2,000. */
const LONGEST_CREDENTIAL = 16_000

const BASE64URL = /^[A-Za-z0-9_-]+$/

/** What `PublicKeyCredential.toJSON` makes. The verification of WebAuthn reads it; members that it does not know are left alone. */
const credential = z
  .looseObject({
    id: z.string().max(2_000).regex(BASE64URL, 'must be base64url'),
    response: z.looseObject({}),
  })
  .refine(
    (value) => JSON.stringify(value).length <= LONGEST_CREDENTIAL,
    `must have at most ${LONGEST_CREDENTIAL} characters`,
  )

const token = z.string().min(1, 'must not be empty').max(200, 'must have at most 200 characters')

export const setupToken = z.strictObject({ token })

export const setupCompletion = z.strictObject({ token, name: text(100), credential })

export const signInCompletion = z.strictObject({ credential })

export const localMember = z.strictObject({ organization_id: uuid, user_id: uuid })

export const passkeyRegistration = z.strictObject({ name: text(100), credential })

/** A page of the console, by its path alone: nothing leads to another host. */
const PAGE = /^\/console(?:\/[\w.~%!$&'()*+,;=:@?/-]*)?$/

const startMembers = {
  /** Whether the person has to prove who it is again, so that the sign-in counts as recent. */
  reauthenticate: z.boolean().default(false),
  to: z.string().max(2_000).regex(PAGE, 'must be the path of a page of the console').default('/console'),
}

/** By the slug of the organization, or by a setup link of one of its members. */
export const oidcStart = z.union(
  [z.strictObject({ organization: slug, ...startMembers }), z.strictObject({ token, ...startMembers })],
  'must hold either organization or token',
)

export const identityProviderReplacement = z.strictObject({
  issuer: z
    .string()
    .max(500, 'must have at most 500 characters')
    .regex(new RegExp(WEB_ADDRESS), 'must be an address')
    .refine(isPlainText, 'must be one line of text')
    .meta({ pattern: WEB_ADDRESS }),
  client_id: text(500),
  /** The stored one stays where left out; null for a client without a secret. */
  client_secret: text(2_000).nullable().optional(),
})
