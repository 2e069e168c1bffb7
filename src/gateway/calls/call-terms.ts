/** What a request selects besides plain tokens: price classes, units with a price of their own, and a wider window. */
import type { Prices } from '../../calls/usage.ts'
import { invalidRequest } from '../../lib/api-error.ts'
import type { Route } from '../catalogue/call-routes.ts'
import type { CatalogueModel } from '../catalogue/model-catalogue.ts'
import { takesMember } from '../protocols/body-members.ts'
import { OPERATIONS, type Operation } from '../protocols/operations.ts'
import type { RequestOutline } from '../protocols/request-outline.ts'
import { DEFAULT_USES, type ServerTool } from '../protocols/server-tools.ts'
import { BETA_HEADERS } from '../providers/forwarded-headers.ts'
import { bodyMembersOf } from '../providers/provider.ts'
import type { ChargeBasis } from './charges.ts'
import { CONTAINER_MINUTES, LEAST_CONTAINER_MINUTES, MOST_CONTAINER_MINUTES } from './container-time.ts'

/** A selection of a request that needs a price. */
interface PricedTerm {
  /** Name of the member in error messages. */
  member: string
  /** Name of its price: a class as `member=value`, a unit, or `long_context`. */
  price: string
  /** Maximum number of a unit in one call; absent for tokens and classes. */
  most?: number
  /** Whether the catalogue's price applies when the selection has no price of its own. */
  isOptional?: boolean
}

export interface CallTerms {
  priced: readonly PricedTerm[]
  /** The widest context window that a header selects, in tokens; 0 for none. */
  window: number
  /** Maximum number of times that the provider may sum up the context within one call, which it reads for that. */
  compactions: number
}

/** Terms without effect on bounds and prices. */
export const PLAIN_TERMS: CallTerms = { priced: [], window: 0, compactions: 0 }

/**
 * Values that need no price. `auto` leaves the choice to the account of the deployment; `flex` and `batch` are cheaper
 * where they have a price. https://platform.openai.com/docs/guides/flex-processing,
 * https://docs.claude.com/en/api/service-tiers
 */
const STANDARD: Record<string, ReadonlySet<unknown>> = {
  service_tier: new Set(['auto', 'default', 'standard', 'standard_only', 'flex', 'batch', 'on_demand']),
  speed: new Set(['standard', 'normal']),
  inference_geo: new Set(['global']),
}
/** Tools of a provider that cost nothing besides their tokens. */
const FREE_TOOLS = new Set(['web_fetch', 'tool_search_tool_regex', 'tool_search_tool_bm25', 'mcp_toolset'])
/** Uses of a tool without a limit of its own in one call. */
const MOST_USES = 100
/** Beta headers of the messages protocol: `context-1m-2025-08-07` widens the window. */
const WIDER_WINDOW = /^context-(\d{1,5})([km])(?:-|$)/i
/** Compaction within a call reads the context once more. https://docs.claude.com/en/docs/build-with-claude/compaction */
const COMPACTION = /^compact-/i

/** @param headers of the caller. */
export function termsOf(outline: RequestOutline, headers: Headers): CallTerms {
  const betas = BETA_HEADERS.flatMap((name) => headers.get(name)?.split(',') ?? []).map((beta) => beta.trim())
  const window = Math.max(0, ...betas.map(windowOf))
  const compactions = betas.some((beta) => COMPACTION.test(beta)) ? 1 : 0
  return {
    priced: [...classTerms(outline), ...toolTerms(outline), ...mediaTerms(outline)],
    window,
    compactions,
  }
}

function windowOf(beta: string): number {
  const [, count, unit] = WIDER_WINDOW.exec(beta) ?? []
  return Number(count ?? 0) * (unit?.toLowerCase() === 'k' ? 1_000 : 1_000_000)
}

const classTerms = ({ fields }: RequestOutline): PricedTerm[] =>
  Object.entries(STANDARD).flatMap(([member, free]) => {
    const value = fields[member]
    if (value === undefined || value === null) return []
    const name = typeof value === 'string' ? value : JSON.stringify(value)
    return [{ member, price: `${member}=${name.slice(0, 100)}`, isOptional: free.has(value) }]
  })

function toolTerms({ fields, serverTools }: RequestOutline): PricedTerm[] {
  const containerIsFree = serverTools.some(runsContainerFreely)
  const terms: PricedTerm[] = serverTools
    .filter(({ type }) => !FREE_TOOLS.has(type))
    .map(({ type, mostUses }) => ({
      member: `tools (${type})`,
      price: type === CODE_EXECUTION ? CONTAINER_MINUTES : type,
      most: type === CODE_EXECUTION ? MOST_CONTAINER_MINUTES : (mostUses ?? MOST_USES),
    }))
    .filter(({ price }) => price !== CONTAINER_MINUTES || !containerIsFree)
  if (isGiven(fields.web_search_options)) {
    terms.push({ member: 'web_search_options', price: SEARCH, most: DEFAULT_USES })
  }
  if (isGiven(fields.search_parameters)) {
    terms.push({ member: 'search_parameters', price: 'search_sources', most: MOST_USES })
  }
  const runsCode = terms.some(({ price }) => price === CONTAINER_MINUTES)
  if (isGiven(fields.container) && !runsCode && !containerIsFree) {
    terms.push({ member: 'container', price: CONTAINER_MINUTES, most: MOST_CONTAINER_MINUTES })
  }
  return terms
}

const CODE_EXECUTION = 'code_execution'
const SEARCH = 'web_search'
/** From this version on, tools that search and fetch include the time of the container. See `CONTAINER_MINUTES`. */
const runsContainerFreely = ({ type, version }: ServerTool): boolean =>
  (type === 'web_search' || type === 'web_fetch') && version !== null && version >= '20260209'
const isGiven = (value: unknown): boolean => value !== undefined && value !== null && value !== false

const AUDIO_INPUT = 'messages (input_audio)'

function mediaTerms({ fields, hasAudio }: RequestOutline): PricedTerm[] {
  const modalities = Array.isArray(fields.modalities) ? fields.modalities : []
  const output = modalities
    .filter((kind) => kind !== 'text')
    .map((kind) => ({ member: 'modalities', price: `${String(kind).slice(0, 100)}_output` }))
  const speaks = isGiven(fields.audio) && !modalities.includes('audio')
  return [
    ...output,
    ...(speaks ? [{ member: 'audio', price: 'audio_output' }] : []),
    ...(hasAudio ? [{ member: AUDIO_INPUT, price: 'audio_input' }] : []),
  ]
}

/**
 * Units of a call that its usage will not state, where they have a price: the time of a container, and the search that chat
 * completions make once for each request (https://platform.openai.com/docs/guides/tools-web-search).
 */
export function fixedUnits(
  { priced }: CallTerms,
  { units }: Prices,
  routes: readonly Route[],
): Pick<ChargeBasis, 'fixedUnits'> {
  const fixed: Record<string, number> = {}
  const has = (unit: string) => units?.[unit] !== undefined && priced.some(({ price }) => price === unit)
  if (has(CONTAINER_MINUTES)) fixed[CONTAINER_MINUTES] = LEAST_CONTAINER_MINUTES
  const searches = priced.some(({ member }) => member === 'web_search_options')
  if (searches && has(SEARCH) && routes.every(({ operation }) => operation !== 'messages')) fixed[SEARCH] = 1
  return Object.keys(fixed).length > 0 ? { fixedUnits: fixed } : {}
}

/** A request on the routes that may take it. */
interface PricedCall {
  routes: Route[]
  /** Prices at the price classes of the call. */
  prices: Prices
  /** Names of unpriced parts that the providers of the routes allow, for the audit record. */
  unpriced: string[]
}

/**
 * The routes on which all that a request selects has a price, or whose provider allows it without one, with the prices of
 * the call.
 * @throws ApiError invalid_request naming the member without a price, when no route is left.
 */
export function pricedCall(
  model: CatalogueModel,
  operation: Operation,
  routes: readonly Route[],
  terms: CallTerms,
): PricedCall {
  const { prices } = model
  if (!OPERATIONS[operation].generates) return { routes: [...routes], prices, unpriced: [] }
  const missing = missingPrices(model, terms)
  const usable = routes.filter(
    (route) => route.provider.allowsUnpriced || !missing.some((term) => reaches(route, term)),
  )
  if (usable.length > 0 || routes.length === 0) {
    const reached = missing.filter((term) => usable.some((route) => reaches(route, term)))
    const unpriced = reached.map(({ price }) => price)
    return { routes: usable, prices: classPrices(prices, terms, usable), unpriced }
  }
  const [term] = missing
  throw invalidRequest(
    `${term?.member}: the model ${model.id} has no price for ${term?.price}. Leave it out, or ask an administrator to set ` +
      'the price.',
  )
}

const isPriced = ({ units, classes }: Prices, { price }: PricedTerm): boolean =>
  units?.[price] !== undefined || classes?.[price] !== undefined

function missingPrices(
  { prices, contextWindow }: CatalogueModel,
  { priced, window }: CallTerms,
): PricedTerm[] {
  const missing = priced.filter((term) => !term.isOptional && !isPriced(prices, term))
  if (window <= contextWindow || prices.longContext) return missing
  return [...missing, { member: 'anthropic-beta', price: LONG_CONTEXT }]
}

const LONG_CONTEXT = 'long_context'

/** Whether a selection has an effect on a route: translations drop what is specific to a vendor, or refuse it. */
function reaches(route: Route, { member }: PricedTerm): boolean {
  const { translation, provider, operation, upstreamModel } = route
  if (!translation) {
    const target = { operation, upstreamModel, stream: false, callerHeaders: null }
    return takesMember(bodyMembersOf(provider, target), member)
  }
  if (member === 'anthropic-beta') return false
  if (translation.upstream === 'converse') return false
  if (translation.upstream === 'generate_content') return member === AUDIO_INPUT
  if (translation.upstream === 'messages') return member === 'web_search_options'
  return translation.caller !== 'messages'
}

/** The prices of tokens at the classes of a call. Several classes multiply. A cheaper one counts if every route has it. */
function classPrices(prices: Prices, { priced }: CallTerms, routes: readonly Route[]): Prices {
  const percent = priced.reduce((product, term) => {
    const own = prices.classes?.[term.price] ?? 100
    const applies = own >= 100 || routes.every((route) => reaches(route, term))
    return applies ? (product * own) / 100 : product
  }, 100)
  return pricesAt(prices, percent)
}

/** Prices of which those of tokens are so many percent. @returns the same object for 100. */
export function pricesAt(prices: Prices, percent: number): Prices {
  if (percent === 100) return prices
  const times = (price: number) => Math.ceil((price * percent) / 100)
  const tokenUnits = Object.entries(prices.units ?? {}).map(([name, price]) => [
    name,
    TOKEN_UNITS.has(name) ? times(price) : price,
  ])
  return {
    ...prices,
    input: times(prices.input),
    output: times(prices.output),
    cacheRead: times(prices.cacheRead),
    cacheWrite5Minutes: times(prices.cacheWrite5Minutes),
    cacheWrite1Hour: times(prices.cacheWrite1Hour),
    units: Object.fromEntries(tokenUnits),
  }
}

const TOKEN_UNITS = new Set(['audio_input', 'audio_output', 'image_output'])
