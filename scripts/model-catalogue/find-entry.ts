import type { ModelPrices } from '../../schema/models.ts'
import { CATALOGUE, type CatalogueEntry } from './catalogue.ts'
import { profileOf, type Vendor } from './vendors.ts'

/** A route of a model, as an administrator names it. */
export interface NamedRoute {
  /** Kind of its provider. */
  kind: string
  baseUrl: string
  upstreamModel: string
}

const VENDORS: Readonly<Record<string, Vendor>> = {
  anthropic: 'anthropic',
  'azure-openai': 'azure',
  foundry: 'azure',
  bedrock: 'aws',
  vertex: 'google',
  gemini: 'google',
  'gemini-openai': 'google',
  mistral: 'mistral',
  groq: 'groq',
  xai: 'x-ai',
  deepseek: 'deepseek',
  together: 'together',
  fireworks: 'fireworks',
  openrouter: 'openrouter',
}

/** The vendor of a kind of provider; null for servers of one's own, and for addresses of no known vendor. */
export function vendorOf(kind: string, baseUrl: string): Vendor | null {
  if (kind !== 'openai-compatible') return VENDORS[kind] ?? null
  return URL.canParse(baseUrl) && new URL(baseUrl).hostname === 'api.openai.com' ? 'openai' : null
}

/** The models that the catalogue has of a vendor. */
export const entriesAt = (vendor: Vendor): CatalogueEntry[] =>
  CATALOGUE.models.filter((entry) => entry.vendor === vendor)

/**
 * What the catalogue has about a model. Ids are compared whole: a part of one may be another model.
 * @returns undefined for a model that it has not.
 */
export function findEntry(vendor: Vendor, id: string): CatalogueEntry | undefined {
  const entries = entriesAt(vendor)
  const wanted = comparable(vendor, id)
  return (
    entries.find((entry) => comparable(vendor, entry.id) === wanted) ??
    entries.find(({ names }) => names?.includes(id))
  )
}

/** Without what does not select another model: profile and first version of Bedrock, version of Vertex. */
function comparable(vendor: Vendor, id: string): string {
  if (vendor === 'aws') {
    const named = id.startsWith('arn:') ? (id.split('/').at(-1) ?? id) : id
    return profileOf(named).model.replace(/:0$/, '').replace(/-v1$/, '')
  }
  if (vendor === 'google') return id.replace(/^(models|google)\//, '').replace(/@[a-z0-9]+$/, '')
  return vendor === 'anthropic' ? id.replace(/-\d{8}$/, '') : id
}

/** The percentage of the entry's prices that a route costs, by where its calls are answered. */
export function regionPercent(entry: CatalogueEntry, { kind, baseUrl, upstreamModel }: NamedRoute): number {
  const { regions } = entry
  if (regions === undefined) return 100
  const region = entry.vendor === 'aws' ? bedrockProfile(upstreamModel) : locationOf(kind, baseUrl)
  return regions[region] ?? regions['*'] ?? 100
}

const bedrockProfile = (id: string): string =>
  profileOf(id.startsWith('arn:') ? (id.split('/').at(-1) ?? id) : id).profile

/** Only the platform has locations, not the API with keys. */
function locationOf(kind: string, baseUrl: string): string {
  if (kind !== 'vertex') return 'global'
  return URL.canParse(baseUrl) && new URL(baseUrl).hostname === 'aiplatform.googleapis.com' ? 'global' : '*'
}

/** The prices of an entry on a day, as `2026-11-29`. */
export const pricesOn = ({ prices, later }: CatalogueEntry, day: string): ModelPrices =>
  later !== undefined && later.from <= day ? later.prices : prices

/** What a route costs in percent of other prices, by the dearer of input and output, rounded up. */
export function percentOfPrices(route: ModelPrices, percent: number, base: ModelPrices): number {
  const ratio = Math.max(route.input / base.input, route.output / base.output)
  return Math.max(1, Math.ceil(Number((percent * ratio).toFixed(6))))
}
