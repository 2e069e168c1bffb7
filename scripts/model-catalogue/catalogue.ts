import type { ModelPrices } from '../../schema/models.ts'
import file from './model-catalogue.json' with { type: 'json' }
import type { Vendor } from './vendors.ts'

/** What is known about a model at one vendor. */
export interface CatalogueEntry {
  vendor: Vendor
  /** As the vendor calls it; on Bedrock without an inference profile. */
  id: string
  /** Other names of the same model there; absent for none. */
  names?: string[]
  ownedBy: string
  contextWindow: number
  maxOutputTokens: number
  prices: ModelPrices
  /** Percent of the prices by where a call is answered: inference profiles of Bedrock, locations of Vertex; `*` for others. */
  regions?: Record<string, number>
  /** Prices that the vendor has announced. `from` is a day, as 2027-01-01. */
  later?: { from: string; prices: ModelPrices }
  capabilities: string[]
}

export interface Catalogue {
  /** The price list, with its version. */
  source: string
  models: CatalogueEntry[]
}

/** The generated file. Part of the scripts alone: the Worker has what is stored of it. */
export const CATALOGUE = file as Catalogue
