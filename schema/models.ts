import {
  bigint,
  boolean,
  index,
  integer,
  jsonb,
  pgTable,
  primaryKey,
  text,
  uniqueIndex,
  uuid,
} from 'drizzle-orm/pg-core'
import { createdAt, instant } from './columns.ts'
import { organizations } from './identity.ts'

/** Kinds of providers; the gateway has a transport for each. */
const PROVIDER_KINDS = [
  'openai-compatible',
  'anthropic',
  'azure-openai',
  'foundry',
  'bedrock',
  'vertex',
  'gemini',
  'mistral',
  'groq',
  'xai',
  'deepseek',
  'together',
  'fireworks',
  'openrouter',
  'ollama',
  'vllm',
  'gemini-openai',
] as const

/** An upstream service of this deployment. The parts of its credential are sealed together (AES-256-GCM), and never shown. */
export const providers = pgTable('providers', {
  id: uuid('id').primaryKey().defaultRandom(),
  /** Lowercase slug, also the default owner label of its models. */
  name: text('name').notNull().unique(),
  kind: text('kind', { enum: PROVIDER_KINDS }).notNull(),
  baseUrl: text('base_url').notNull(),
  sealedCredential: text('sealed_credential').notNull(),
  /** The only organization whose calls are sent there; null for all. */
  organizationId: uuid('organization_id').references(() => organizations.id),
  /** Members of requests that this provider accepts and that are refused for other providers. */
  allowedMembers: jsonb('allowed_members').$type<string[]>().notNull().default([]),
  /** Whether calls may use models without a price; their audit records are flagged. */
  allowsUnpriced: boolean('allows_unpriced').notNull().default(false),
  disabledAt: instant('disabled_at'),
  createdAt: createdAt(),
})

/** Prices in micro-credits per million tokens of each class (integers). `docs/models.md` lists the optional ones. */
export interface ModelPrices {
  input: number
  output: number
  cacheRead: number
  cacheWrite5Minutes: number
  cacheWrite1Hour: number
  /** Micro-credits per million units that are billed apart, such as `web_search` or tokens of `audio_input`. */
  units?: Record<string, number>
  /** Percent of all token prices by selected class, such as `service_tier=priority`. */
  classes?: Record<string, number>
  /** Percent of the token prices of a call with more input than `above` tokens. */
  longContext?: { above: number; inputPercent: number; outputPercent: number }
}

/** A model by the name that callers use. */
export const models = pgTable('models', {
  id: text('id').primaryKey(),
  ownedBy: text('owned_by').notNull(),
  contextWindow: integer('context_window').notNull(),
  maxOutputTokens: integer('max_output_tokens').notNull(),
  prices: jsonb('prices').$type<ModelPrices>().notNull(),
  capabilities: jsonb('capabilities').$type<string[]>().notNull().default([]),
  disabledAt: instant('disabled_at'),
  createdAt: createdAt(),
})

/** The routes of a model, in order of preference. */
export const modelRoutes = pgTable(
  'model_routes',
  {
    modelId: text('model_id')
      .notNull()
      .references(() => models.id, { onDelete: 'cascade' }),
    position: integer('position').notNull(),
    providerId: uuid('provider_id')
      .notNull()
      .references(() => providers.id),
    upstreamModel: text('upstream_model').notNull(),
    /** Percent of the model's token prices that calls cost over this route, such as for a region. */
    pricePercent: integer('price_percent').notNull().default(100),
  },
  (table) => [primaryKey({ columns: [table.modelId, table.position] })],
)

/** Rights to use a model. `subject_id` is a group id, a user id, a role name, or the organization id. */
export const grants = pgTable(
  'grants',
  {
    id: uuid('id').primaryKey().defaultRandom(),
    organizationId: uuid('organization_id')
      .notNull()
      .references(() => organizations.id),
    subjectType: text('subject_type', { enum: ['organization', 'group', 'role', 'user'] }).notNull(),
    subjectId: text('subject_id').notNull(),
    /** A model id, or `*` for every model of the deployment. */
    modelId: text('model_id').notNull(),
    createdAt: createdAt(),
  },
  (table) => [
    uniqueIndex('grants_unique').on(table.organizationId, table.subjectType, table.subjectId, table.modelId),
    index('grants_model').on(table.organizationId, table.modelId),
  ],
)

/** Single-row counters. `catalogue` is raised by every change of a provider or model. */
export const deploymentEpochs = pgTable('deployment_epochs', {
  name: text('name').primaryKey(),
  epoch: bigint('epoch', { mode: 'number' }).notNull().default(1),
})
