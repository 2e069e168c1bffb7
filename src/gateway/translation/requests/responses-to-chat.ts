import { invalidRequest } from '../../../lib/api-error.ts'
import type { Json } from '../json.ts'
import type { TargetModel } from '../target-model.ts'

/**
 * A responses request as a chat completion request.
 * @throws ApiError invalid_request naming what chat completions cannot say.
 */
export function responsesToChat(_request: Json, _target: TargetModel): Json {
  throw invalidRequest('input: responses are not supported by this model.')
}
