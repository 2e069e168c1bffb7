import type { Vendor } from './vendors.ts'

/**
 * Percent of the token prices for selected classes; the price list lacks them. A class above the token prices that is not
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
const CLASSES: Partial<Record<Vendor, Array<{ name: string; percent: number; models: RegExp }>>> = {
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
 * Dollars for a thousand searches of models that do not reason, on chat completions. The price list has 10 for them; litellm
 * 1.109.1 (read 2026-11-22) has 25, as https://platform.openai.com/docs/pricing has for `web search preview`. The higher
 * one counts.
 */
const PREVIEW_SEARCHES = { price: 25, models: /^gpt-4/ }

/** Percentages of the token prices of a model, by class. */
export const classesOf = (vendor: Vendor, id: string): Record<string, number> =>
  Object.fromEntries(
    (CLASSES[vendor] ?? [])
      .filter(({ models }) => models.test(id))
      .map(({ name, percent }) => [name, percent]),
  )

/**
 * Micro-credits per million units that are billed beside tokens, where the vendor itself runs the tools.
 * @param searches dollars for a thousand searches in the price list.
 */
export function unitsOf(vendor: Vendor, id: string, searches: number | undefined): Record<string, number> {
  if (vendor !== 'openai' && vendor !== 'anthropic') return {}
  const isPreview = searches !== undefined && PREVIEW_SEARCHES.models.test(id)
  const price = isPreview ? PREVIEW_SEARCHES.price : searches
  return {
    ...(price !== undefined && { web_search: Math.round(price * 1_000_000_000) }),
    ...(vendor === 'anthropic' && { container_minutes: CONTAINER_MINUTES }),
  }
}
