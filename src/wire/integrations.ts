import * as z from 'zod'
import { jsonObject, line, pageQuery, text, uuid, WEB_ADDRESS } from './management-fields.ts'
import { isPlainText } from './page-cursor.ts'

/** Bodies and queries of the management API for integrations, their tools, and the rights to use them. */

/** Postgres `integer`. */
const LARGEST_PRICE = 2_147_483_647
const MOST_TOOLS = 2_000

/** A slug without an underscore: the first underscore of a tool's name ends the integration (interface: MCP gateway). */
export const integrationSlug = z
  .string()
  .max(40, 'must have at most 40 characters')
  .regex(/^[a-z0-9]+(-[a-z0-9]+)*$/, 'must be lowercase letters, digits and single inner hyphens')
  .refine((slug) => slug !== 'platform', 'must not be platform, which the tools of the gateway have')
  .meta({ not: { const: 'platform' } })

const address = z
  .string()
  .min(1, 'must not be empty')
  .max(2_000, 'must have at most 2000 characters')
  .refine(isPlainText, 'must be one line of text')
  .meta({ pattern: WEB_ADDRESS })

/** Header names that carry no credential, or that the gateway sets itself. */
const RESERVED_HEADERS =
  /^(host|connection|content-.*|accept.*|transfer-encoding|cookie|mcp-.*|te|upgrade|via)$/i
/** The same for JSON Schema, whose patterns have no flags. */
const RESERVED_HEADER_PATTERN = RESERVED_HEADERS.source.replaceAll(
  /[a-z]/g,
  (letter) => `[${letter.toUpperCase()}${letter}]`,
)

const authorization = z.discriminatedUnion(
  'kind',
  [
    z.strictObject({ kind: z.literal('none') }),
    z.strictObject({ kind: z.literal('bearer') }),
    z.strictObject({ kind: z.literal('basic') }),
    z.strictObject({
      kind: z.literal('header'),
      header: z
        .string()
        .regex(/^[A-Za-z0-9-]{1,100}$/, 'must be the name of a header')
        .refine((name) => !RESERVED_HEADERS.test(name), 'must be a header that carries a credential')
        .meta({ not: { pattern: RESERVED_HEADER_PATTERN } }),
    }),
    z.strictObject({
      kind: z.literal('oauth'),
      authorization_server: address.optional(),
      client_id: text(500).optional(),
      client_secret: text(2_000).optional(),
      scopes: z.array(text(200)).max(100, 'must hold at most 100 scopes').optional(),
    }),
  ],
  'must be none, bearer, header, basic or oauth',
)

const price = z
  .int('must be a whole number of micro-credits')
  .min(0, 'must be at least 0')
  .max(LARGEST_PRICE, `must be at most ${LARGEST_PRICE}`)

export const approval = z.enum(['first', 'automatic', 'manual'])

/** An OpenAPI document. Its content is checked by the conversion into tools. */
const document = jsonObject()

/** The name of a tool, as the upstream has it. */
const upstreamToolName = text(200)

const common = {
  display_name: text(200).optional(),
  description: z.string().max(2_000, 'must have at most 2000 characters').optional(),
  approval: approval.optional(),
  price: price.optional(),
  disabled: z.boolean().optional(),
}

export const integrationCreation = z.discriminatedUnion(
  'kind',
  [
    z.strictObject({
      kind: z.literal('mcp'),
      slug: integrationSlug,
      url: address,
      authorization: authorization.default({ kind: 'none' }),
      ...common,
    }),
    z.strictObject({
      kind: z.literal('openapi'),
      slug: integrationSlug,
      /** The first server of the document where left out. */
      url: address.optional(),
      document,
      authorization: authorization.default({ kind: 'none' }),
      ...common,
    }),
  ],
  'must be mcp or openapi',
)

export const integrationUpdate = z.strictObject({
  url: address.optional(),
  document: document.optional(),
  authorization: authorization.optional(),
  ...common,
})

export const integrationListQuery = pageQuery.extend({ slug: line(100).optional() })

export const integrationRefresh = z.strictObject({
  /** A connection whose catalogue is refreshed; every catalogue of the integration where left out. */
  connection_id: text(200).optional(),
})

/** Tools that a decision is about, by the names that the upstream has. `hash` names one definition of a single tool. */
export const toolDecision = z.strictObject({
  tools: z
    .array(upstreamToolName)
    .min(1, 'must not be empty: leave it out for all that are pending')
    .max(MOST_TOOLS, `must hold at most ${MOST_TOOLS} names`)
    .optional(),
  hash: z
    .string()
    .regex(/^[0-9a-f]{64}$/, 'must be 64 hexadecimal digits')
    .optional(),
})

export const toolSwitch = z.strictObject({
  tools: z.array(upstreamToolName).min(1, 'must not be empty').max(MOST_TOOLS),
})

const role = z.enum(['owner', 'admin', 'member'])

const granted = {
  integration: z.union([z.literal('*'), integrationSlug], 'must be the slug of an integration, or *'),
  /** Names as the upstream has them; every tool where left out. */
  tools: z
    .array(upstreamToolName)
    .min(1, 'must not be empty: leave it out for every tool')
    .max(MOST_TOOLS)
    .nullish(),
}

/** Names of tools go with one integration. */
const TOOLS_OF_ALL = {
  properties: { integration: { const: '*' }, tools: { type: 'array' } },
  required: ['integration', 'tools'],
}

export const integrationGrantCreation = z
  .discriminatedUnion(
    'subject_type',
    [
      z.strictObject({ subject_type: z.literal('organization'), ...granted }),
      z.strictObject({ subject_type: z.literal('group'), subject_id: uuid, ...granted }),
      z.strictObject({ subject_type: z.literal('user'), subject_id: uuid, ...granted }),
      z.strictObject({ subject_type: z.literal('role'), subject_id: role, ...granted }),
    ],
    'must be organization, group, user or role',
  )
  .meta({ not: TOOLS_OF_ALL })

export const integrationGrantListQuery = pageQuery.extend({ integration: line(100).optional() })

export type IntegrationCreation = z.infer<typeof integrationCreation>
export type IntegrationUpdate = z.infer<typeof integrationUpdate>
export type IntegrationGrantCreation = z.infer<typeof integrationGrantCreation>
export type ToolDecision = z.infer<typeof toolDecision>
export type AuthorizationBody = z.infer<typeof authorization>
