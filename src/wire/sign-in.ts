import * as z from 'zod'
import { text, uuid } from './management-fields.ts'

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
