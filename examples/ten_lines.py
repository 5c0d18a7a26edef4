import argparse

parser = argparse.ArgumentParser()
parser.add_argument("--x", type=float)
parser.add_argument("--y_offset", type=float, default=0)
arguments = parser.parse_args()

score = 1 - (arguments.x - 2) ** 2 - arguments.y_offset
print(f"score={score}")
