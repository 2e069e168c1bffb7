import * as z from 'zod'
import type { Database } from '../../../schema/database.ts'
import { selectCallerProfile } from '../../identity/caller-profile.store.ts'
import { keyIdOf, type Principal } from '../../identity/principal.ts'
import type { LedgerOf } from '../../ledger/contract.ts'
import { selectUsageTotals } from '../../ledger/records/read-records.store.ts'
import { HOME_SHARD } from '../../ledger/shards/shards.ts'
import type { Clock } from '../../lib/clock.ts'
import { output, platformError, platformTool, READS } from './platform-tool.ts'

/** A model that the caller may use. */
export interface UsableModel {
  id: string
  contextWindow: number
  maxOutputTokens: number
  capabilities: readonly string[]
  /** Micro-credits for a million tokens; null where the price is not of that form. */
  inputPrice: number | null
  outputPrice: number | null
}

export interface AccountDeps {
  clock: Clock
  database: Database
  ledgerOf: LedgerOf
  /** The models that a principal may use. They belong to the gateway of models, which this folder does not import. */
  usableModels: (principal: Principal) => Promise<UsableModel[]>
}

const named = z.object({ id: z.string(), name: z.string() })

const whoami = platformTool<AccountDeps, z.ZodObject>({
  name: 'platform_whoami',
  title: 'Who am I',
  description: 'Names the user, the organization, the role and the API key with which you call this service.',
  input: z.strictObject({}),
  output: z.object({
    user: named.extend({ email: z.string() }),
    organization: named.extend({ slug: z.string() }),
    roles: z.array(z.string()),
    group_ids: z.array(z.string()),
    entitlements: z.array(z.string()),
    key: z.object({ id: z.string(), label: z.string() }).nullable(),
  }),
  hints: READS,
  async run({ database }, principal) {
    const profile = await selectCallerProfile(database, principal)
    if (profile === null) return platformError('not_found', 'The account does not exist any more.')
    const { userId, organizationId, role, groupIds, entitlements } = principal
    const keyId = keyIdOf(principal)
    return output({
      user: { id: userId, name: profile.userName, email: profile.email },
      organization: { id: organizationId, name: profile.organizationName, slug: profile.organizationSlug },
      roles: [role],
      group_ids: groupIds,
      entitlements,
      key: keyId === null ? null : { id: keyId, label: profile.keyLabel ?? '' },
    })
  },
})

const price = z.int().nullable().describe('Micro-credits for a million tokens.')

const modelsInput = z.strictObject({
  query: z.string().min(1).max(200).optional().describe('Part of a model id.'),
  capability: z.string().min(1).max(100).optional().describe('Such as vision, tools or reasoning.'),
})

const listModels = platformTool<AccountDeps, typeof modelsInput>({
  name: 'platform_list_models',
  title: 'List models',
  description: 'Lists the language models that you may use, with the size of their context and their prices.',
  input: modelsInput,
  output: z.object({
    models: z.array(
      z.object({
        id: z.string(),
        context_window: z.int(),
        max_output_tokens: z.int(),
        capabilities: z.array(z.string()),
        input_price: price,
        output_price: price,
      }),
    ),
  }),
  hints: READS,
  async run({ usableModels }, principal, { query, capability }) {
    const wanted = query?.toLowerCase()
    const models = (await usableModels(principal)).filter(
      (model) =>
        (wanted === undefined || model.id.toLowerCase().includes(wanted)) &&
        (capability === undefined || model.capabilities.includes(capability)),
    )
    return output({
      models: models.map((model) => ({
        id: model.id,
        context_window: model.contextWindow,
        max_output_tokens: model.maxOutputTokens,
        capabilities: model.capabilities,
        input_price: model.inputPrice,
        output_price: model.outputPrice,
      })),
    })
  },
})

const DAY_MS = 24 * 60 * 60 * 1_000
/** Days of usage where no period is given. */
const DEFAULT_DAYS = 30
const MOST_ROWS = 500

const instant = z.iso.datetime({ offset: true }).describe('ISO 8601 with a zone.')
const usageInput = z.strictObject({
  from: instant
    .optional()
    .describe(`The start of the period; ${DEFAULT_DAYS} days ago where it is left out.`),
  to: instant.optional().describe('The end of the period; now where it is left out.'),
  group_by: z.enum(['model', 'key', 'day']).default('model'),
})

const getUsage = platformTool<AccountDeps, typeof usageInput>({
  name: 'platform_get_usage',
  title: 'Get usage',
  description:
    'Sums up calls, tokens and credits of a period: your own, or those of the organization if you are its owner or an ' +
    'administrator. Usage appears a moment after a call has ended.',
  input: usageInput,
  output: z.object({
    scope: z.enum(['user', 'organization']),
    rows: z.array(
      z.object({
        group: z.string().nullable(),
        calls: z.int(),
        input_tokens: z.int(),
        output_tokens: z.int(),
        cost: z.int().describe('Micro-credits.'),
      }),
    ),
    has_more: z.boolean(),
    balance: z.int().nullable().describe('Micro-credits of the organization; null for a member.'),
  }),
  hints: READS,
  async run({ clock, database, ledgerOf }, principal, input) {
    const { organizationId, userId, role } = principal
    const isMember = role === 'member'
    const from = input.from === undefined ? new Date(clock() - DEFAULT_DAYS * DAY_MS) : new Date(input.from)
    const to = input.to === undefined ? undefined : new Date(input.to)
    const filter = { groupBy: input.group_by, from, to, ...(isMember && { userId }) }
    const page = { limit: MOST_ROWS, after: null }
    const [{ rows, next }, credits] = await Promise.all([
      selectUsageTotals({ database, organizationId }, filter, page),
      isMember ? null : ledgerOf(organizationId, HOME_SHARD).balance(),
    ])
    return output({
      scope: isMember ? 'user' : 'organization',
      rows: rows.map(({ group, calls, inputTokens, outputTokens, cost }) => ({
        group: group === '' ? null : group,
        calls,
        input_tokens: inputTokens,
        output_tokens: outputTokens,
        cost,
      })),
      has_more: next !== null,
      balance: credits?.available ?? null,
    })
  },
})

export const accountTools = [whoami, listModels, getUsage]
