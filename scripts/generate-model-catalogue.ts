// npm run generate:catalogue: writes src/gateway/catalogue/model-catalogue.json from the prices package.

import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { findProvider, type ModelInfo, type ModelPrice } from '@pydantic/genai-prices'

export const CATALOGUE_FILE = join(import.meta.dirname, '../src/gateway/catalogue/model-catalogue.json')

type Vendor = 'openai' | 'anthropic'

/**
 * Models that talk in text over chat completions or messages and are offered today. Left out: retired generations,
 * audio, realtime, image, embedding and moderation models, and models that only the responses API serves.
 */
const OFFERED: Record<Vendor, RegExp> = {
  openai:
    /^(gpt-4o|gpt-4o-mini|gpt-4\.1(-mini|-nano)?|gpt-5(\.\d)?(-mini|-nano|-luna|-sol|-terra)?|gpt-6(-\w+)?|o3|o3-mini|o4-mini)$/,
  anthropic: /^claude-(haiku|sonnet|opus|fable)-\d(-\d+)?$/,
}

/**
 * The package has no output limits. These are the vendors' published ones where a family shares one, and the
 * family's smallest where it does not; newer models get their family's last known figure.
 * https://platform.openai.com/docs/models and https://docs.claude.com/en/docs/about-claude/models/overview
 */
const OUTPUT_LIMITS: Array<[RegExp, number]> = [
  [/^gpt-4o/, 16_384],
  [/^gpt-4\.1/, 32_768],
  [/^gpt-5\.3$/, 16_384],
  [/^gpt-/, 128_000],
  [/^o\d/, 100_000],
  [/^claude-opus-4-[01]$/, 32_000],
  [/^claude-/, 64_000],
]

/**
 * Features of models that translation needs and the package lacks, by name of the model. A word holds for the models
 * that its pattern matches and its exception does not.
 *
 * - `reasoning`: takes `reasoning_effort` or `thinking`. GPT-5.3 is offered as the chat model that does not think.
 *   https://platform.openai.com/docs/guides/reasoning, https://docs.claude.com/en/docs/build-with-claude/extended-thinking
 * - `adaptive_thinking`: takes `thinking: {type: adaptive}` and `output_config.effort`, from generation 4.6 on; later
 *   ones refuse a budget. https://docs.claude.com/en/docs/build-with-claude/adaptive-thinking
 * - `thinks_by_default`: thinks where the request has no `thinking`, from generation 5 on. Before it, thinking is off until it is
 *   requested. https://platform.claude.com/docs/en/about-claude/models/whats-new-opus-5 (read 2026-11-24)
 * - `json_schema`: output is held to a schema, at Anthropic from generation 4.5 on.
 *   https://docs.claude.com/en/docs/build-with-claude/structured-outputs
 * - `json_object`: any JSON object; the messages protocol has no such mode.
 * - `vision`: takes images.
 * - `tools_without_reasoning`: takes tools on chat completions only with `reasoning_effort: none`, from GPT-5.4 on.
 *   https://github.com/openai/openai-openapi/issues/541
 */
const CAPABILITIES: Record<Vendor, Array<{ word: string; models: RegExp; except?: RegExp }>> = {
  openai: [
    { word: 'reasoning', models: /^(gpt-[5-9]|o\d)/, except: /^gpt-5\.3$/ },
    { word: 'tools_without_reasoning', models: /^gpt-(5\.([4-9]|\d\d)|[6-9])/ },
    { word: 'json_object', models: /./ },
    { word: 'json_schema', models: /./ },
    { word: 'vision', models: /./, except: /^o3-mini$/ },
  ],
  anthropic: [
    { word: 'reasoning', models: /./ },
    { word: 'adaptive_thinking', models: /^claude-[a-z]+-(4-[6-9]|[5-9])/ },
    { word: 'thinks_by_default', models: /^claude-[a-z]+-[5-9]/ },
    { word: 'json_schema', models: /^claude-[a-z]+-(4-[5-9]|[5-9])/ },
    { word: 'vision', models: /./ },
  ],
}

interface GeneratedModel {
  id: string
  provider: Vendor
  contextWindow: number
  maxOutputTokens: number
  prices: {
    input: number
    output: number
    cacheRead: number
    cacheWrite5Minutes: number
    cacheWrite1Hour: number
    units?: Record<string, number>
    classes?: Record<string, number>
    longContext?: { above: number; inputPercent: number; outputPercent: number }
  }
  capabilities: string[]
}

/**
 * Percent of the token prices for selected classes; the package lacks them. A class above the token prices that is not
 * listed here is refused; one below them costs the token prices. Cached input is rounded by the vendor, so that `flex` of
 * some models costs up to 52 percent there.
 *
 * - `service_tier=priority` and `service_tier=flex`: https://platform.openai.com/docs/pricing, as the price file of
 *   litellm 1.109.1 has them (read 2026-11-22).
 * - `speed=fast`: twice the token prices; removed for generations before Opus 4.8.
 *   https://platform.claude.com/docs/build-with-claude/fast-mode (read 2026-11-22), equal in litellm 1.109.1
 * - `inference_geo=us`: generation 4.6 and later. https://platform.claude.com/docs/en/manage-claude/data-residency
 *   (read 2026-11-22), equal in litellm 1.109.1
 */
const CLASSES: Record<Vendor, Array<{ name: string; percent: number; models: RegExp }>> = {
  openai: [
    { name: 'service_tier=priority', percent: 250, models: /^gpt-5\.5$/ },
    {
      name: 'service_tier=priority',
      percent: 200,
      models: /^(gpt-5(\.[124])?|gpt-5\.4-mini|gpt-(5\.6|6)-\w+|gpt-4\.1-nano)$/,
    },
    { name: 'service_tier=priority', percent: 180, models: /^gpt-5-mini$/ },
    { name: 'service_tier=priority', percent: 182, models: /^o4-mini$/ },
    { name: 'service_tier=priority', percent: 175, models: /^(gpt-4\.1(-mini)?|o3)$/ },
    { name: 'service_tier=priority', percent: 170, models: /^gpt-4o$/ },
    { name: 'service_tier=priority', percent: 167, models: /^gpt-4o-mini$/ },
    { name: 'service_tier=flex', percent: 52, models: /^gpt-5\.4$/ },
    { name: 'service_tier=flex', percent: 51, models: /^o4-mini$/ },
    {
      name: 'service_tier=flex',
      percent: 50,
      models: /^(gpt-5(-mini|-nano|\.[125]|\.4-mini|\.4-nano)?|gpt-(5\.6|6)-\w+|o3)$/,
    },
  ],
  anthropic: [
    { name: 'speed=fast', percent: 200, models: /^claude-opus-(4-8|5|5-5)$/ },
    { name: 'inference_geo=us', percent: 110, models: /^claude-[a-z]+-(4-[6-9]|[5-9])/ },
  ],
}

/**
 * Micro-credits per million minutes of a container: $0.05 an hour.
 * https://platform.claude.com/docs/en/agents-and-tools/tool-use/code-execution-tool (read 2026-11-22)
 */
const CONTAINER_MINUTES = Math.ceil(50_000_000_000 / 60)

/**
 * Dollars for a thousand searches of models that do not reason, on chat completions. The package has 10 for them; litellm
 * 1.109.1 (read 2026-11-22) has 25, as https://platform.openai.com/docs/pricing has for `web search preview`. The higher
 * one counts.
 */
const PREVIEW_SEARCHES = { price: 25, models: /^gpt-4/ }

/**
 * The text of the catalogue file for the installed package. It depends on nothing else: a regeneration with the
 * same version gives the same bytes.
 *
 * @throws if the package lacks a price or context window of a model that is offered
 */
export function generateCatalogue(): string {
  const require = createRequire(import.meta.url)
  const manifest = join(require.resolve('@pydantic/genai-prices'), '../../package.json')
  const { version } = JSON.parse(readFileSync(manifest, 'utf8')) as { version: string }
  const models = [...modelsOf('openai'), ...modelsOf('anthropic')]
  const source = `@pydantic/genai-prices ${version}`
  return `${JSON.stringify({ source, unit: 'micro-credits per million tokens', models }, null, 2)}\n`
}

function modelsOf(vendor: Vendor): GeneratedModel[] {
  const provider = findProvider({ providerId: vendor })
  if (provider === undefined) throw new Error(`the package knows no provider ${vendor}`)
  return provider.models
    .filter((model) => OFFERED[vendor].test(model.id) && model.context_window !== undefined)
    .map((model) => catalogueModel(vendor, model))
    .sort((left, right) => (left.id < right.id ? -1 : 1))
}

function catalogueModel(vendor: Vendor, model: ModelInfo): GeneratedModel {
  const prices = currentPrices(model)
  const input = microCredits(model, prices, 'input_mtok')
  const anthropic = vendor === 'anthropic'
  const price = (name: string, fallback: number) =>
    prices[name] === undefined ? fallback : microCredits(model, prices, name)
  const limit = OUTPUT_LIMITS.find(([pattern]) => pattern.test(model.id))
  if (limit === undefined || model.context_window === undefined) throw new Error(`no limits for ${model.id}`)
  const cacheWrite5Minutes = price('cache_write_mtok', anthropic ? Math.ceil(input * 1.25) : input)
  return {
    id: model.id,
    provider: vendor,
    contextWindow: model.context_window,
    maxOutputTokens: Math.min(limit[1], model.context_window),
    prices: {
      input,
      output: microCredits(model, prices, 'output_mtok'),
      cacheRead: price('cache_read_mtok', input),
      cacheWrite5Minutes,
      // OpenAI has no lifetimes to choose from: whatever is written costs the same.
      cacheWrite1Hour: price('cache_write_1h_mtok', anthropic ? input * 2 : cacheWrite5Minutes),
      ...unitsOf(vendor, model.id, prices),
      ...classesOf(vendor, model.id),
      ...longContextOf(prices),
    },
    capabilities: capabilitiesOf(vendor, model.id),
  }
}

function unitsOf(vendor: Vendor, id: string, prices: ModelPrice): Pick<GeneratedModel['prices'], 'units'> {
  const listed = prices.web_searches_kcount
  const isPreview = typeof listed === 'number' && PREVIEW_SEARCHES.models.test(id)
  const searches = isPreview ? PREVIEW_SEARCHES.price : listed
  const units = {
    // Dollars for a thousand searches.
    ...(typeof searches === 'number' && { web_search: Math.round(searches * 1_000_000_000) }),
    ...(vendor === 'anthropic' && { container_minutes: CONTAINER_MINUTES }),
  }
  return Object.keys(units).length > 0 ? { units } : {}
}

function classesOf(vendor: Vendor, id: string): Pick<GeneratedModel['prices'], 'classes'> {
  const classes = CLASSES[vendor].filter(({ models }) => models.test(id))
  if (classes.length === 0) return {}
  return { classes: Object.fromEntries(classes.map(({ name, percent }) => [name, percent])) }
}

/** For prices that rise with the length of the prompt: the highest step over all classes of tokens. */
function longContextOf(prices: ModelPrice): Pick<GeneratedModel['prices'], 'longContext'> {
  const steps = Object.entries(prices).flatMap(([name, price]) => {
    if (typeof price !== 'object' || !('tiers' in price)) return []
    return price.tiers.map((tier) => ({
      isOutput: name.startsWith('output'),
      above: tier.start,
      percent: Math.ceil(Number(((100 * tier.price) / price.base).toFixed(6))),
    }))
  })
  if (steps.length === 0) return {}
  const percentOf = (ofOutput: boolean) =>
    Math.max(100, ...steps.filter(({ isOutput }) => isOutput === ofOutput).map(({ percent }) => percent))
  const above = Math.min(...steps.map((step) => step.above))
  return { longContext: { above, inputPercent: percentOf(false), outputPercent: percentOf(true) } }
}

function capabilitiesOf(vendor: Vendor, id: string): string[] {
  return CAPABILITIES[vendor]
    .filter(({ models, except }) => models.test(id) && except?.test(id) !== true)
    .map(({ word }) => word)
}

/** The last of several dated prices: the package lists them oldest first, and they are chosen by date. */
function currentPrices(model: ModelInfo): ModelPrice {
  if (!Array.isArray(model.prices)) return model.prices
  const latest = model.prices.at(-1)
  if (latest === undefined) throw new Error(`no prices for ${model.id}`)
  return latest.prices
}

/**
 * A price in whole micro-credits (1 credit is 1 USD). For prices that rise with the length of the prompt it is the base
 * price; `longContextOf` returns the others.
 */
function microCredits(model: ModelInfo, prices: ModelPrice, name: string): number {
  const price = prices[name]
  const dollars = typeof price === 'object' ? price.base : price
  if (typeof dollars !== 'number') throw new Error(`${model.id} has no ${name}`)
  return Math.round(dollars * 1_000_000)
}

if (import.meta.main) {
  writeFileSync(CATALOGUE_FILE, generateCatalogue())
  console.log(`wrote ${CATALOGUE_FILE}`)
}
