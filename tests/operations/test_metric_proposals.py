"""What `sweep try` proposes for what programs print: the metric's own number, or none."""

import re
from pathlib import Path

import pytest

from sweepledger.operations.scaffold.metric_proposals import propose
from sweepledger.structs.metric import Goal, Metric

LIGHTGBM = "[9]\tvalid_0's auc: 0.78\n[10]\tvalid_0's auc: 0.79\tvalid_0's binary_logloss: 0.5"
KERAS = "10/10 - 1s - loss: 0.5 - accuracy: 0.9 - val_loss: 0.6 - val_accuracy: 0.85 - 9ms/step"
TRANSFORMERS = "{'eval_loss': 0.5, 'eval_accuracy': 0.9, 'epoch': 1.0}\n{'train_loss': 0.4, 'epoch': 3.0}"
DETECTRON = " eta: 0:01  iter: 19  total_loss: 1.2  loss_cls: 0.3  time: 0.3"
FAIRSEQ = (
    "2020-01-01 | INFO | valid | epoch 001 | valid on 'valid' subset | loss 5.4 | nll_loss 4.1 | ppl 17.1"
)
IMAGENET = "Epoch: [0][10/100]\tTime  0.1 ( 0.2)\tLoss 6.9 (6.95)\tAcc@1   1.00 (  0.5)"
MNIST = "Test set: Average loss: 0.0265, Accuracy: 9912/10000 (99%)"
SKLEARN = "    accuracy                           0.85       143\n   macro avg       0.86      0.84      0.83       143"
FOLDS = "Fold 1 accuracy: 0.8\nFold 2 accuracy: 0.9\nMean accuracy: 0.85 +/- 0.05"
LIGHTNING = "Epoch 4, global step 100: 'val_loss' reached 0.25 (best 0.25), saving model to 'x.ckpt' as top 1"
GEOMETRIC = "Epoch 003: | Train Loss: 0.6 | Val Loss: 0.7 | Val Acc: 80.1"
PRINTED = [
    (LIGHTGBM, "auc", 0.79),
    (LIGHTGBM, "binary_logloss", 0.5),
    ("[9]\ttrain-rmse:0.5\ttest-rmse:0.1", "rmse", 0.1),
    (KERAS, "val_accuracy", 0.85),
    (KERAS, "accuracy", 0.9),
    (KERAS, "score", 0.85),
    (TRANSFORMERS, "eval_accuracy", 0.9),
    ("epoch     train_loss  accuracy  time    \n0         0.5   0.9   00:03", "accuracy", None),
    (DETECTRON, "total_loss", 1.2),
    (DETECTRON, "loss", None),
    (FAIRSEQ, "ppl", 17.1),
    (" * Acc@1 71.2 Acc@5 90.1", "accuracy", None),
    (" * Acc@1 71.2 Acc@5 90.1", "acc1", 71.2),
    (IMAGENET, "loss", 6.9),
    (SKLEARN, "accuracy", 0.85),
    (SKLEARN, "macro_avg", None),
    ("100:\tlearn: 0.5\ttest: 0.6\tbest: 0.55 (90)\ttotal: 1s", "best", 0.55),
    ("finished run\nnumber of examples = 200\naverage loss = 0.123", "average_loss", 0.123),
    ("|    ep_rew_mean      | 21.3     |\n|    fps | 900 |", "ep_rew_mean", 21.3),
    ("val_loss=1.234e-05", "val_loss", 1.234e-05),
    ("Best accuracy so far: 91.3% (epoch 4)", "accuracy", 91.3),
    (MNIST, "loss", 0.0265),
    (MNIST, "accuracy", 99),
    ("1.5% error", "error", None),
    ("step 100 | loss 3.1 | lr 3.00e-04 | 12 ms", "loss", 3.1),
    ("Validation loss decreased (0.693147 --> 0.500000).  Saving model ...", "val_loss", None),
    ("mAP@0.5: 0.63", "map", 0.63),
    ("mAP@0.5:0.95 = 0.41", "map", None),
    ("Precision@10: 0.4", "score", 0.4),
    ("top-1 accuracy: 71.2", "accuracy", 71.2),
    ("accuracy of fold 3: 0.9", "accuracy", None),
    (FOLDS, "accuracy", 0.85),
    (FOLDS, "mean_accuracy", 0.85),
    ("loss at step 100: 0.5", "score", 0.5),
    ("2024-01-01 12:00:00,123 - train - INFO - val loss: 0.5", "val_loss", 0.5),
    (GEOMETRIC, "loss", 0.7),
    ("Accuracy of the network on the 10000 test images: 54 %", "accuracy", 54),
    ("MSE (train/test): 0.1/0.2", "mse", None),
    ("lowest val loss so far 0.25 (epoch 5 of 10)", "val_loss", 0.25),
    ("epoch=4-val_loss=0.25.ckpt", "val_loss", None),
    (LIGHTNING, "val_loss", 0.25),
    ("Train Epoch: 1 [59520/60000 (99%)]\tLoss: 0.030\nTest set: loss 0.2", "loss", 0.2),
    ("Test Accuracy of class 3: 80%\nTest Accuracy of class 4: 70%", "accuracy", None),
    ("val/loss 0.5 val/acc 0.9", "val/acc", 0.9),
    ("\x1b[32mloss: 0.5\x1b[0m", "loss", 0.5),
    ("loss:\t0,5", "loss", None),
    ("bleu = 27.3, 60.1/33.2/20.1/12.9 (BP=1.0, ratio=1.0)", "bleu", 27.3),
    ("%WER 5.30 [ 100 / 2000 ]", "wer", 5.3),
    ("perplexity 12.3", "ppl", 12.3),
    ("episode_reward=-12.50 +/- 3.20", "reward", -12.5),
    ("mean_return 1e3", "return", 1000),
    ("AUC-ROC: 0.9 AUC-PR: 0.7", "auc", None),
    ("[Info] Iteration:10, training l2 : 0.10\n[Info] Iteration:10, valid_1 l2 : 0.14", "l2", 0.14),
]


@pytest.mark.parametrize(("printed", "name", "expected"), PRINTED)
def test_a_proposed_pattern_reads_the_number_of_the_metric_or_there_is_none(
    printed: str, name: str, expected: float | None, tmp_path: Path
) -> None:
    proposal = propose(Metric(name, Goal.MINIMIZE), printed, "", tmp_path, tmp_path)

    block = proposal.block if proposal else None
    patterns = block["patterns"] if block else ["(?!)"]
    plain = re.sub(r"\x1b\[\d*m", "", printed)
    values = [found["value"] for found in re.finditer(patterns[0], plain, re.MULTILINE | re.ASCII)]
    assert (float(values[-1]) if values else None) == expected
