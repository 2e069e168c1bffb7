import { invalidRequest } from '../../../lib/api-error.ts'

/** Properties of Gemini models that their names tell: no list of the vendor has them in a form that can be read. */
interface GeminiModel {
  /** 2.5 for `gemini-2.5-flash`. A name without a version counts as the newest generation. */
  generation: number
  isPro: boolean
}

const VERSION = /gemini-(\d+(?:\.\d+)?)/i
const NEWEST = Number.POSITIVE_INFINITY

/** @param upstreamModel the model's id at the provider, with or without a prefix. */
export function geminiModel(upstreamModel: string): GeminiModel {
  const version = VERSION.exec(upstreamModel)?.[1]
  return {
    generation: version === undefined ? NEWEST : Number(version),
    isPro: /(^|[^a-z])pro([^a-z]|$)/i.test(upstreamModel),
  }
}

/** From this generation on models take levels of thinking, and refuse calls without their signatures. */
const LEVELS_FROM = 3
export const takesThinkingLevels = ({ generation }: GeminiModel): boolean => generation >= LEVELS_FROM

/** 2.5 refuses penalties on the Gemini API, and a format of the answer beside tools. */
export const takesPenalties = ({ generation }: GeminiModel): boolean => generation !== 2.5
export const formatsBesideTools = takesThinkingLevels

/** @throws ApiError invalid_request for several choices on a stream, whose end could not be told. */
export function checkedChoices(choices: number, stream: boolean): number {
  if (choices > 1 && stream) throw invalidRequest('n: only one choice is supported on streams of this model.')
  return choices
}
