import type { ContextItem } from '../model/types.ts'
import { ITEM_TYPES } from './types/item-types.ts'
/** Whether an item is of a model's turn, and not of the caller's. */
export const isModelOutput = ({ type, role }: Pick<ContextItem, 'type' | 'role'>): boolean =>
  ITEM_TYPES.get(type)?.events !== undefined && (type !== 'message' || role === 'assistant')
