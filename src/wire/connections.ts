import * as z from 'zod'
import { LINE, pageParameters, text, uuid } from './management-fields.ts'
import { isPlainText } from './page-cursor.ts'

// Bodies of connections: on the public surface, and in the management API.

/** The id of a connection, in paths and bodies. */
const CONNECTION_ID = /^conn_[0-9A-Za-z]{1,60}$/
export const isConnectionId = (id: string) => CONNECTION_ID.test(id)

/** The body that sets a default connection. Other members are ignored, because newer clients may send them. */
export const defaultSetting = z.object({
  connection_id: z.string('must be the id of a connection').min(1, 'must not be empty').max(200),
})

const slug = z.string().regex(/^[a-z0-9]+(-[a-z0-9]+)*$/, 'must be the id of an integration')

/** A secret of one line that is valid in a header. */
const secretLine = z
  .string()
  .min(1, 'must not be empty')
  .max(10_000, 'must have at most 10000 characters')
  .regex(/^[\x21-\x7e]+( [\x21-\x7e]+)*$/, 'must be one line of printable ASCII')

const passwordText = z
  .string()
  .max(1_000, 'must have at most 1000 characters')
  .refine(isPlainText, 'must be one line of text')
  .meta({ pattern: LINE })

/** RFC 7617: a colon ends the user name. */
const username = passwordText
  .refine((value) => !value.includes(':'), 'must not hold a colon')
  .meta({ pattern: '^[^:\\u0000-\\u001f\\u007f]*$' })

/** A secret for a bearer token or a header, or user name and password. Refusals quote nothing of it. */
const staticCredential = z.union(
  [
    z.strictObject({ secret: secretLine }),
    z.strictObject({ username, password: passwordText.min(1, 'must not be empty') }),
  ],
  { error: () => 'must be an object with secret, or with username and password, each one line of text' },
)

export const connectionStatus = z.enum(['pending', 'active', 'needs_reauth', 'revoked'])

export const connectionListQuery = z.strictObject({
  ...pageParameters,
  integration: slug.optional(),
  user_id: uuid.optional(),
  status: connectionStatus.optional(),
})

export const connectionCreation = z.strictObject({
  integration: slug,
  display_name: text(200),
  /** The owner; the organization where left out. */
  user_id: uuid.nullish(),
  broker: z.enum(['local', 'nango']).default('local'),
  credential: staticCredential.optional(),
})

export const connectionUpdate = z.strictObject({
  display_name: text(200).optional(),
  /** Null: the organization. */
  user_id: uuid.nullable().optional(),
  credential: staticCredential.optional(),
  status: connectionStatus.exclude(['pending']).optional(),
})

/** The user who connects the account: the owner, or a user that is named for a connection of the organization. */
export const connectStart = z.strictObject({ user_id: uuid.optional() })

export const sharePermission = z.enum(['use', 'manage'])

export const shareReplacement = z.strictObject({ permission: sharePermission.default('use') })

export type StaticCredential = z.infer<typeof staticCredential>
