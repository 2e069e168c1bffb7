/** A number with its unit, as a sentence has them: "1 second", "2 seconds". @param unit one of it. */
export const counted = (count: number, unit: string): string => `${count} ${unit}${count === 1 ? '' : 's'}`
